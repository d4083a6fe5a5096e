// A training loop: a small Transformer learns a rule that is planted in made-up sentences. A recipe says what is trained; the loop
// below is what `tilewave train` does around it, without files: batches, steps, a validation now and then.
//   training_loop [STEPS]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "models/recipe/corpus_of.h"
#include "models/step/train_step.h"

namespace {

using namespace tilewave;

constexpr const char* kRecipe = R"(
[model]
d_model = 64
d_ff = 128
heads = 4
encoder_layers = 1
decoder_layers = 1
vocabulary = 64
max_positions = 16
positions = "learned"
[data]
kind = "synthetic"
[batch]
source_tokens = 256
target_tokens = 256
sequence = 16
[optimizer]
learning_rate = 5e-3
[schedule]
warmup_steps = 20
)";

void train(std::int64_t steps) {
  // What is trained, its shapes known before anything is allocated.
  const ResolvedRecipe resolved = resolve(parse_recipe({.source = "training_loop", .text = kRecipe}));
  const Corpus corpus = corpus_of(resolved.recipe);

  // Where: the queue takes launches, the context owns memory and plans. A GPU's queue is make_cuda_queue().
  Context context(make_cpu_queue(), probe_cpu(), context_options(resolved.recipe));
  TrainStep step(context, resolved);
  step.use_step_memory(trace_step(resolved, context.device()));  // one block of memory, laid out from a trace: no allocation in a step

  BatchStream batches = corpus.training(batch_shape(resolved));
  for (std::int64_t number = 1; number <= steps; ++number) {
    const std::vector<Batch> batch = {*batches.next()};
    const StepReport report = step.run(batch, number);  // forward, backward, AdamW
    if (number != 1 && number % 50 != 0) continue;
    std::printf("step %4lld  training loss %.4f  validation loss %.4f nats per token\n", static_cast<long long>(number), report.loss,
                step.validate(corpus.validation(batch_shape(resolved))));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 200);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_loop: %s\n", error.what());
    return 1;
  }
}
