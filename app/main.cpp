// The command line: ./tilewave COMMAND ...
#include <array>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <malloc.h>
#include <new>
#include <span>
#include <sys/resource.h>

#include "app/options/command.h"
#include "app/options/usage.h"
#include "app/options/version.h"
#include "app/process/failure.h"
#include "app/process/standard_streams.h"

namespace {

constexpr int kUsage = 2;

void check_printed() {
  const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  TW_CHECK(std::cout.flush() && printed,
           "what was to be printed could not be written to standard output; free its disk, or name another file.");
}

// A heap of its own for each thread takes 64 MiB of addresses, which a limit on them (ulimit -v) does not leave.
void keep_to_one_heap_under_a_limit() {
#ifdef __GLIBC__
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) ::mallopt(M_ARENA_MAX, 1);
#endif
}

int run_program(int argc, char** argv) {
  using tilewave::Command;
  CLI::App program("tilewave: train Transformers from recipes, and see what each Tensor Core guideline is worth", "tilewave");
  program.require_subcommand(1);
  program.set_version_flag("--version", tilewave::version_text(tilewave::kCommit), "print version, commit, build and CUDA, and exit");
  const std::array commands = {tilewave::add_train(program, tilewave::kCommit),
                               tilewave::add_translate(program),
                               tilewave::add_generate(program),
                               tilewave::add_check(program),
                               tilewave::add_step(program),
                               tilewave::add_inspect(program),
                               tilewave::add_plan(program),
                               tilewave::add_ablate(program),
                               tilewave::add_guidelines(program),
                               tilewave::add_figures(program, tilewave::kCommit),
                               tilewave::add_bench(program),
                               tilewave::add_tokenize(program),
                               tilewave::add_import(program),
                               tilewave::add_export(program),
                               tilewave::add_report(program),
                               tilewave::add_evaluate(program),
                               tilewave::add_classify(program),
                               tilewave::add_caption(program),
                               tilewave::add_devices(program),
                               tilewave::add_completion(program),
                               tilewave::add_man(program),
                               tilewave::add_schema(program)};
  tilewave::prepare_options(program);
  tilewave::check_words(program, std::span<const char* const>(argv, argv + argc).subspan(argc > 0 ? 1 : 0));
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    const int code = program.exit(success, std::cout, std::cerr);
    check_printed();
    return code;
  } catch (const CLI::ParseError& error) {
    throw tilewave::InputError(tilewave::usage_sentence(program, error));
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    const bool threads = command.app->get_option_no_throw("--threads") != nullptr;
    tilewave::name_what_is_done("tilewave " + command.app->get_name(), threads ? tilewave::Threads::optional : tilewave::Threads::fixed);
    const int code = command.action();
    check_printed();
    return code;
  }
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  tilewave::occupy_standard_streams();
  tilewave::report_uncaught_failures();
  keep_to_one_heap_under_a_limit();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large is an error with a sentence, not the end
  try {
    return run_program(argc, argv);
  } catch (...) {
    return tilewave::report_failure();
  }
}
