// What collectives ask of their arguments, their cost and what of them goes over links; and what hosts say to each other, as a gather of
// words.
#include "kernels/ops/collective.h"

#include <algorithm>
#include <cstring>

#include "kernels/core/contract.h"
#include "kernels/core/memory.h"

namespace tilewave {
namespace {

template <class Args>
TraceEntry entry_of(const Args& args, CollectiveKind kind, std::int64_t bytes) {
  return {.operation = Args::kOperation,
          .layer = {},
          .cost = cost(args),
          .time = Args::kTime,
          .gemm = {},
          .plan = {},
          .attention = {},
          .collective = CollectiveWork{.kind = kind, .bytes = bytes, .ranks = args.ranks.count}};
}

void expect_rank(std::string_view operation, const Communicator& ranks) {
  TW_CHECK(ranks.count >= 1 && ranks.rank >= 0 && ranks.rank < ranks.count, operation, ": there is no rank ", ranks.rank, " of ",
           ranks.count, "; ranks are numbered from 0 on.");
}

void expect_dense(std::string_view operation, std::string_view name, const ConstMatrixView& view) {
  TW_CHECK(view || view.rows * view.cols == 0, operation, ": ", name, " is absent.");
  TW_CHECK(view.rows <= 1 || view.ld == view.cols, operation, ": ", name, " has rows of ", view.cols, " elements that lie ", view.ld,
           " apart; ranks exchange memory without gaps: give the whole storage as one row.");
}

// A row of all ranks' shares and one rank's share of it.
struct Shares {
  std::string_view operation, whole_name, share_name;
  ConstMatrixView whole, share;
};
void expect_shares(const Shares& shares, const Communicator& ranks) {
  const ConstMatrixView &whole = shares.whole, &share = shares.share;
  expect_rank(shares.operation, ranks);
  TW_CHECK(whole.cols % ranks.count == 0, shares.operation, ": ", shares.whole_name, " is ", shape_of(whole), ", which ", ranks.count,
           " ranks do not divide; pad it to ", (whole.cols / ranks.count + 1) * ranks.count, " columns.");
  const Contract contract(shares.operation);
  contract.expect(shares.whole_name, whole, {.rows = 1, .cols = whole.cols, .dtype = whole.dtype});
  contract.expect(shares.share_name, share, {.rows = 1, .cols = whole.cols / ranks.count, .dtype = whole.dtype});
  const auto* const first = static_cast<const std::byte*>(whole.data);
  const auto* const own = static_cast<const std::byte*>(share.data);
  const bool apart = own + share.bytes() <= first || first + whole.bytes() <= own;
  TW_CHECK(apart || own == first + ranks.rank * share.bytes(), shares.operation, ": ", shares.share_name, " overlaps ", shares.whole_name,
           " elsewhere than at columns ", ranks.rank * share.cols, " to ", (ranks.rank + 1) * share.cols, ", which are rank ", ranks.rank,
           "'s; give those, or other memory.");
}

// A rank alone moves a share that is the whole only to other memory.
bool moves(const ConstMatrixView& x, const ConstMatrixView& y, const Communicator& ranks) { return !ranks.alone() || x.data != y.data; }

}  // namespace

Cost cost(const AllReduceArgs& args) {
  if (args.ranks.alone()) return {};
  const std::int64_t elements = args.x.rows * args.x.cols;
  return {.flops = elements * (args.ranks.count - 1) / args.ranks.count, .bytes = 2 * args.x.bytes()};
}
Cost cost(const ReduceScatterArgs& args) {
  if (!moves(args.x, args.y, args.ranks)) return {};
  return {.flops = args.y.cols * (args.ranks.count - 1), .bytes = args.x.bytes() + args.y.bytes()};
}
Cost cost(const AllGatherArgs& args) {
  if (!moves(args.x, args.y, args.ranks)) return {};
  return {.flops = 0, .bytes = args.x.bytes() + args.y.bytes()};
}
Cost cost(const BroadcastArgs& args) { return {.flops = 0, .bytes = args.ranks.alone() ? 0 : args.x.bytes()}; }

TraceEntry trace_entry(const AllReduceArgs& args) { return entry_of(args, CollectiveKind::all_reduce, args.x.bytes()); }
TraceEntry trace_entry(const ReduceScatterArgs& args) { return entry_of(args, CollectiveKind::reduce_scatter, args.x.bytes()); }
TraceEntry trace_entry(const AllGatherArgs& args) { return entry_of(args, CollectiveKind::all_gather, args.y.bytes()); }
TraceEntry trace_entry(const BroadcastArgs& args) { return entry_of(args, CollectiveKind::broadcast, args.x.bytes()); }

void check(const AllReduceArgs& args) {
  expect_rank(AllReduceArgs::kOperation, args.ranks);
  expect_dense(AllReduceArgs::kOperation, "x", args.x);
}
void check(const ReduceScatterArgs& args) {
  expect_shares({.operation = ReduceScatterArgs::kOperation, .whole_name = "x", .share_name = "y", .whole = args.x, .share = args.y},
                args.ranks);
}
void check(const AllGatherArgs& args) {
  expect_shares({.operation = AllGatherArgs::kOperation, .whole_name = "y", .share_name = "x", .whole = args.y, .share = args.x},
                args.ranks);
}
void check(const BroadcastArgs& args) {
  expect_rank(BroadcastArgs::kOperation, args.ranks);
  expect_dense(BroadcastArgs::kOperation, "x", args.x);
  TW_CHECK(args.root >= 0 && args.root < args.ranks.count, BroadcastArgs::kOperation, ": there is no rank ", args.root, " of ",
           args.ranks.count, " to take x from.");
}

namespace {

// Memory of a queue for the length of a call.
class Words {
 public:
  Words(Queue& queue, std::int64_t count)
      : queue_(queue), data_(allocate(queue, count * size_of(DType::i32))), view_{data_, 1, count, count, DType::i32} {}
  ~Words() { release(queue_, data_); }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  const MatrixView& view() const { return view_; }

 private:
  Queue& queue_;
  void* data_;
  MatrixView view_;
};

// Every rank's words, as many from each.
std::vector<std::int32_t> gathered(Queue& queue, const Communicator& ranks, const std::vector<std::int32_t>& said) {
  const auto count = static_cast<std::int64_t>(said.size());
  std::vector<std::int32_t> all(said.size() * static_cast<std::size_t>(ranks.count));
  const Words own(queue, count), whole(queue, count * ranks.count);
  copy_to_device(queue, own.view().data, said.data(), own.view().bytes());
  const AllGatherArgs gather = {.x = own.view(), .y = whole.view(), .ranks = ranks};
  std::visit(  // past the log: it is nothing of a step
      [&]<class Q>(Q& q) {
        if constexpr (!std::is_same_v<Q, TraceQueue>) run(q, gather);
      },
      queue);
  copy_to_host(queue, all.data(), whole.view().data, whole.view().bytes());
  return all;
}

}  // namespace

// First how much each has to say, then all of it, each as long as the longest.
std::vector<std::string> exchange(Queue& queue, const Communicator& ranks, const std::string& said) {
  if (ranks.alone()) return {said};
  TW_CHECK(!std::holds_alternative<TraceQueue>(queue), "exchange: ", ranks.count, " ranks have nothing to say to each other in a trace.");
  TW_CHECK(said.size() <= INT32_MAX, "exchange: ", said.size(), " bytes are more than ranks say at once; write them to a file.");
  const std::vector<std::int32_t> lengths = gathered(queue, ranks, {static_cast<std::int32_t>(said.size())});
  const auto longest = static_cast<std::size_t>(*std::ranges::max_element(lengths));
  std::vector<std::string> all(static_cast<std::size_t>(ranks.count));
  if (longest == 0) return all;
  std::vector<std::int32_t> words((longest + sizeof(std::int32_t) - 1) / sizeof(std::int32_t));
  std::memcpy(words.data(), said.data(), said.size());
  const std::vector<std::int32_t> texts = gathered(queue, ranks, words);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    all[rank].assign(reinterpret_cast<const char*>(&texts[rank * words.size()]), static_cast<std::size_t>(lengths[rank]));
  }
  return all;
}

}  // namespace tilewave
