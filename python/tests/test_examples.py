"""The examples run, and print what they promise: those for torch and numpy where these are."""

import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "python" / "examples"


def there_is(module):
    return importlib.util.find_spec(module) is not None


class Examples(unittest.TestCase):
    def run_example(self, name, *arguments):
        done = subprocess.run([sys.executable, "-B", str(EXAMPLES / name), *map(str, arguments)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_plan_table(self):
        told = self.run_example("plan_table.py", ROOT / "recipes" / "transformer_big.toml", "h100-sxm")
        self.assertRegex(told, r"^transformer_big on .*: a step is predicted to take \d+\.\d+ ms\n")
        self.assertRegex(told, r"\n[a-z ]+: \d+ instead of \d+ makes a step \d+\.\d%")

    def test_train_until(self):
        with tempfile.TemporaryDirectory() as folder:
            told = self.run_example("train_until.py", ROOT / "recipes" / "tiny.toml", "4.4", folder + "/run")
        self.assertIn("step 5: loss ", told)
        self.assertIn("the run goes on with resume=True", told)

    @unittest.skipUnless(there_is("numpy"), "there is no numpy: its example was NOT run")
    def test_numpy_layer(self):
        told = self.run_example("numpy_layer.py")
        self.assertLess(float(re.search(r"differ by (\S+) at most", told)[1]), 1e-4)

    @unittest.skipUnless(there_is("torch"), "there is no torch: its example was NOT run")
    def test_torch_model(self):
        told = self.run_example("torch_model.py")
        self.assertLess(float(re.search(r"differ by (\S+) at most", told)[1]), 1e-3)
        losses = [float(loss) for loss in re.findall(r"loss (\S+)", told)]
        self.assertLess(losses[-1], losses[0])

    @unittest.skipUnless(there_is("torch"), "there is no torch: its example was NOT run")
    def test_torch_compiled(self):
        self.assertIn("(4, 33, 128) of torch.bfloat16; gradients of torch.float32, norm 0.", self.run_example("torch_compiled.py"))

    def test_each_has_one(self):
        tested = {name.removeprefix("test_") for name in dir(self) if name.startswith("test_")}
        self.assertEqual({path.stem for path in EXAMPLES.glob("*.py")} - tested, set())


if __name__ == "__main__":
    unittest.main()
