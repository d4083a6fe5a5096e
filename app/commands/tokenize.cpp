// tilewave tokenize: text files become token files for data.kind = "tokens" and for llm.c, or --check says what a tokenizer is and whether
// text comes back from its ids.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <unistd.h>

#include "app/options/command.h"
#include "app/process/stop_signals.h"
#include "app/text/terminal.h"
#include "app/text/units.h"
#include "framework/data/text_encoder.h"
#include "framework/data/token_shards.h"
#include "framework/io/file.h"
#include "framework/io/text_file.h"

namespace tilewave {
namespace {

constexpr std::string_view kNoToken = "none", kEndOfText = "<|endoftext|>";

// Where scripts, numbers, marks, emoji, code and white space meet.
constexpr std::string_view kHardText =
    "The model's loss didn't fall: we'LL see, I'd say... 12345 tokens, 3.14 \u00BD \u0663\n"
    "def f(x):\n\treturn x**2  # two  spaces\r\n\r\n   \u00FCber na\u00EFve u\u0308ber e\u0301\u0323 Stra\u00DFe \u01C5\n"
    "\u65E5\u672C\u8A9E\u306E\u6587 \u4E2D\u6587123 \uD55C\uAD6D\uC5B4 \u0939\u093F\u0928\u094D\u0926\u0940 "
    "\u0627\u0644\u0639\u0631\u0628\u064A\u0629 \u05E2\u05D1\u05E8\u05D9\u05EA \u0E44\u0E17\u0E22 "
    "\u0395\u03BB\u03BB\u03B7\u03BD\u03B9\u03BA\u03AC\n"
    "\U0001F642 \U0001F469\u200D\U0001F469\u200D\U0001F467 \U0001F1E9\U0001F1EA \u00A0\u2003\u3000 \U00020000 "
    "https://example.org/?a=b&c\n\n\n";

struct TokenizeArguments {
  std::vector<std::filesystem::path> files;
  std::string tokenizer, check, begin;
  ShardOptions shards;
  bool json = false;
};

// On a terminal a line that is drawn anew; elsewhere one every ten seconds.
class TokenizeProgress {
 public:
  void show(const ShardProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_ < (terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10))) return;
    shown_ = now;
    const double taken = std::chrono::duration<double>(now - begun_).count();
    const double left = taken / static_cast<double>(progress.bytes_done) * static_cast<double>(progress.bytes - progress.bytes_done);
    const std::string line = concat(bytes_text(progress.bytes_done), " of ", bytes_text(progress.bytes), ", ", count_text(progress.tokens),
                                    " tokens, ", duration_text(std::max(left, 0.0)), " left");
    std::cerr << (terminal_ ? "\r\x1b[K" : "") << line << (terminal_ ? "" : "\n") << std::flush;
    drawn_ = terminal_;
  }
  ~TokenizeProgress() {
    if (drawn_) std::cerr << "\r\x1b[K" << std::flush;
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1, drawn_ = false;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now(), shown_ = begun_;
};

// Where the two differ, or nothing.
std::optional<std::size_t> first_difference(std::string_view a, std::string_view b) {
  if (a == b) return std::nullopt;
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

struct RoundTrip {
  std::string name;
  std::int64_t bytes = 0, tokens = 0;
  std::string fault;  // empty where the text came back
};

RoundTrip round_trip(const TextEncoder& encoder, const std::string& name, const std::string& given) {
  const std::string text = encoder.prepared(given);
  const std::vector<std::int32_t> ids = encoder.encode(text);
  RoundTrip trip{.name = name, .bytes = std::ssize(text), .tokens = std::ssize(ids)};
  const std::string back = encoder.decode(ids), expected = encoder.as_it_comes_back(text);
  if (const auto at = first_difference(expected, back)) {
    trip.fault = concat("comes back different from byte ", *at + 1, " on: \"", printable(std::string_view(expected).substr(*at, 24)),
                        "\" became \"", printable(std::string_view(back).substr(std::min(*at, back.size()), 24)), "\"");
  }
  return trip;
}

int check_tokenizer(const TokenizeArguments& options) {
  const TextEncoder encoder(options.check);
  std::vector<RoundTrip> trips;
  if (options.files.empty()) trips.push_back(round_trip(encoder, "built-in text", std::string(kHardText)));
  for (const std::filesystem::path& file : options.files) trips.push_back(round_trip(encoder, file.string(), read_text(file)));
  const bool good = std::ranges::all_of(trips, [](const RoundTrip& trip) { return trip.fault.empty(); });
  if (options.json) {
    nlohmann::ordered_json report = {{"tokenizer", encoder.what()}, {"vocabulary", encoder.vocabulary()}, {"found", encoder.facts()}};
    for (const RoundTrip& trip : trips) {
      report["texts"].push_back({{"name", trip.name}, {"bytes", trip.bytes}, {"tokens", trip.tokens}, {"comes_back", trip.fault.empty()}});
      if (!trip.fault.empty()) report["texts"].back()["fault"] = trip.fault;
    }
    std::cout << report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return good ? 0 : 1;
  }
  std::cout << for_stdout(encoder.what(), LineEnds::escaped) << ": " << count_text(encoder.vocabulary()) << " ids\n";
  for (const std::string& fact : encoder.facts()) std::cout << "  " << for_stdout(fact, LineEnds::escaped) << '\n';
  for (const RoundTrip& trip : trips) {
    std::cout << for_stdout(trip.name, LineEnds::escaped) << ": " << bytes_text(trip.bytes) << ", " << count_text(trip.tokens)
              << " tokens, " << (trip.fault.empty() ? "comes back as it was" : trip.fault) << '\n';
  }
  return good ? 0 : 1;
}

// The ids that go before each document: those of --begin, of the tokenizer's file, or its <|endoftext|>, as llm.c has it.
std::vector<std::int32_t> ids_before(const TextEncoder& encoder, const std::string& begin) {
  if (begin == kNoToken) return {};
  if (begin.empty()) {
    if (std::vector<std::int32_t> own = encoder.before(); !own.empty()) return own;
    const std::optional<std::int32_t> end_of_text = encoder.find(kEndOfText);
    return end_of_text ? std::vector{*end_of_text} : std::vector<std::int32_t>();
  }
  const std::optional<std::int32_t> id = encoder.find(begin);
  TW_CHECK_INPUT(id, "--begin ", printable(begin), " is no token of ", encoder.what(), "; name one of its special tokens, or none.");
  return {*id};
}

std::string shown_ids(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += concat(text.empty() ? "" : " ", id);
  return text;
}

int write_tokens(const TokenizeArguments& options) {
  TW_CHECK_INPUT(!options.tokenizer.empty(), "--tokenizer is missing; name a tokenizer.json, a run, or bytes.");
  TW_CHECK_INPUT(!options.shards.folder.empty(), "--out is missing; name a folder for the token files.");
  TW_CHECK_INPUT(!options.files.empty(), "FILES are missing; name the text files.");
  const TextEncoder encoder(options.tokenizer);
  ShardOptions shards = options.shards;
  shards.files = options.files;
  shards.before = ids_before(encoder, options.begin);
  if (options.begin != kNoToken) shards.behind = encoder.behind();
  catch_stop_signals();
  answer_first_signal(FirstSignal::is_asked_for, "tilewave: stopping; no token file is kept.");
  shards.interrupted = [] { return caught_signal() != 0; };
  ShardReport report;
  {
    TokenizeProgress progress;
    shards.progress = [&](const ShardProgress& now) { progress.show(now); };
    report = write_token_shards(encoder, shards);
  }
  if (report.interrupted) return 128 + caught_signal();
  if (options.json) {
    nlohmann::ordered_json json = {{"tokenizer", encoder.what()},   {"vocabulary", encoder.vocabulary()},
                                   {"documents", report.documents}, {"bytes", report.bytes},
                                   {"tokens", report.tokens},       {"ids_before", shards.before},
                                   {"ids_behind", shards.behind},   {"files", nlohmann::json::array()}};
    for (const std::filesystem::path& file : report.files) json["files"].push_back(file.string());
    std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return 0;
  }
  std::cout << count_text(report.tokens) << " tokens of " << count_text(report.documents)
            << (report.documents == 1 ? " document" : " documents") << " (" << bytes_text(report.bytes) << ") by "
            << for_stdout(encoder.what(), LineEnds::escaped) << ", " << count_text(encoder.vocabulary()) << " ids\n";
  std::cout << (shards.before.empty() ? "no id goes before a document" : concat("before each document: ", shown_ids(shards.before)))
            << (shards.behind.empty() ? "" : concat("; behind it: ", shown_ids(shards.behind))) << '\n';
  for (const std::filesystem::path& file : report.files) std::cout << for_stdout(file.string(), LineEnds::escaped) << '\n';
  return 0;
}

int tokenize(const TokenizeArguments& options) { return options.check.empty() ? write_tokens(options) : check_tokenizer(options); }

}  // namespace

Command add_tokenize(CLI::App& program) {
  CLI::App* command = program.add_subcommand("tokenize", "make token files of text files, or check a tokenizer");
  const auto options = std::make_shared<TokenizeArguments>();
  command->add_option("files", options->files, "text files, a document each; with --check, texts to try (without: built-in text)");
  CLI::Option* tokenizer = command->add_option(
      "--tokenizer", options->tokenizer, "a tokenizer.json of byte-level BPE, a run's tokenizer.model, a folder that holds one, or bytes");
  command->add_option("--check", options->check, "say what this tokenizer is and whether text comes back from its ids")
      ->excludes(tokenizer);
  command->add_option("--out", options->shards.folder, "the folder of the token files, new or empty");
  command->add_option("--name", options->shards.name, "what the token files are called: NAME_000000.bin")->capture_default_str();
  command->add_option("--shard-tokens", options->shards.shard_tokens, "tokens of a file; the last one has the rest")
      ->check(CLI::Range(std::int64_t{1}, (std::int64_t{1} << 31) - 1))
      ->capture_default_str();
  command->add_option("--begin", options->begin,
                      "a token that goes before each document, or none; without it, the tokenizer's own, or its <|endoftext|>");
  command->add_option("--threads", options->shards.threads, "CPU threads; 0 takes every one the process may use")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print JSON");
  return {command, [options] { return tokenize(*options); }};
}

}  // namespace tilewave
