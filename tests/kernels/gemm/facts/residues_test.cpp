// Rows that start on any element, without a GPU: the arithmetic that the rows unaligned_deferred and unaligned launch with,
// followed address by address. Every element of D is written once, every product is made once, and what another row owns is
// neither multiplied nor written.
#include <algorithm>
#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <vector>

#include "kernels/gemm/catalog.h"
#include "kernels/gemm/sm80/tensor_core_residues.h"
#include "kernels/gemm/sm90/unaligned.h"
#include "kernels/gemm/sm90/unaligned_deferred.h"
#include "tests/kernels/gemm/cases.h"
#include "tests/kernels/gemm/gpus.h"

namespace tilewave {
namespace {

constexpr std::int64_t kBox = 64;

// A matrix at an address that nobody reads, so many bytes past a multiple of 256.
ConstMatrixView somewhere(std::int64_t past, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  return {reinterpret_cast<const void*>((std::uintptr_t{1} << 40) + static_cast<std::uintptr_t>(past)), rows, cols, ld, DType::bf16};
}
std::uintptr_t address(const ConstMatrixView& matrix, std::int64_t row, std::int64_t col) {
  return reinterpret_cast<std::uintptr_t>(matrix.data) + static_cast<std::uintptr_t>((row * matrix.ld + col) * size_of(matrix.dtype));
}

struct Draw {
  std::mt19937 random{20261122};

  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
  }
  // Packed as often as not, its base on any element.
  ConstMatrixView matrix(std::int64_t rows, std::int64_t cols) {
    const std::int64_t past = 2 * (*this)(0, 15), more = (*this)(0, 1) == 0 ? 0 : (*this)(0, 9);  // in this order under any compiler
    return somewhere(past, rows, cols, cols + more);
  }
  // On 16 bytes.
  ConstMatrixView aligned(std::int64_t rows, std::int64_t cols) { return somewhere(16 * (*this)(0, 3), rows, cols, round_up(cols, 8)); }
};

GemmArgs args_of(const ConstMatrixView& a, Major a_major, const ConstMatrixView& b, Major b_major, const ConstMatrixView& d) {
  GemmArgs args = {.a = a, .a_major = a_major, .b = b, .b_major = b_major};
  args.d = {.data = const_cast<void*>(d.data), .rows = d.rows, .cols = d.cols, .ld = d.ld, .dtype = d.dtype};
  return args;
}

TEST(Residues, RowsOfOneAreAnAlignedMatrixThatBeginsEarly) {
  Draw draw;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t rows_drawn = draw(1, 40), cols_drawn = draw(1, 60);
    ConstMatrixView matrix = draw.matrix(rows_drawn, cols_drawn);
    if (draw(0, 3) == 0) {
      matrix.dtype = DType::f32;
      matrix.data = reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(matrix.data) / 4 * 4);
    }
    const std::int64_t size = size_of(matrix.dtype), alignment = alignment_of(address(matrix, 0, 0), matrix.ld * size);
    const std::int64_t residues = residues_of(matrix.cols, matrix.ld, alignment, matrix.dtype);
    SCOPED_TRACE(concat(matrix.rows, "x", matrix.cols, " pitch ", matrix.ld, " ", name_of(matrix.dtype), ", ", residues, " residues"));
    ASSERT_TRUE(residues >= 1 && residues <= kMaxResidues);
    std::int64_t rows = 0;
    for (std::int64_t residue = 0; residue < std::min(residues, matrix.rows); ++residue) {
      const RowsOfResidue of = rows_of_residue(matrix, residues, residue);
      ASSERT_EQ(address(of.view, 0, 0) % 16, 0u);
      ASSERT_EQ(of.view.ld * size % 16, 0);
      ASSERT_TRUE(of.shift >= 0 && of.shift <= max_shift(alignment, matrix.dtype));
      ASSERT_GE(of.view.rows, 1);
      ASSERT_TRUE(of.view.rows == 1 || of.view.cols <= of.view.ld);
      for (std::int64_t row = 0; row < of.view.rows; ++row) {
        ASSERT_EQ(address(of.view, row, of.shift), address(matrix, residue + row * residues, 0));
        ASSERT_EQ(address(of.view, row, of.view.cols), address(matrix, residue + row * residues, matrix.cols));
      }
      rows += of.view.rows;
    }
    ASSERT_EQ(rows, matrix.rows);
  }
}

// A launch of unaligned_deferred: what each tile reads, multiplies and writes.
class ResidueLaunch {
 public:
  ResidueLaunch(const GemmArgs& args, Tile tile)
      : args_(args), tile_(tile), tiles_(residue_tiles(problem_of(args), tile)), k_(problem_of(args).k) {}

  void run() {
    for (std::int64_t down = 0; down < tiles_.down; ++down) {
      const TileOfResidue place = tile_of_residue(static_cast<int>(down), static_cast<int>(tiles_.used), static_cast<int>(tile_.n));
      const RowsOfResidue rows = rows_of_residue(args_.b, tiles_.residues, place.residue);
      multiply(rows);
      for (std::int64_t across = 0; across < tiles_.across; ++across) write(place, across * tile_.m);
    }
  }
  void expect_whole() const {
    const ConstMatrixView d = args_.d;
    ASSERT_EQ(written_.size(), static_cast<std::size_t>(d.rows * d.cols));
    for (const auto& [at, place] : written_) {
      ASSERT_EQ(place.times, 1);
      ASSERT_EQ(at, address(d, place.row, place.col));
    }
  }

 private:
  struct Place {
    std::int64_t row = 0, col = 0;  // of D: the row operand's row and the column operand's
    int times = 0;
  };

  // Along K, as blocks of 64 of both operands meet: each k once, and zeros wherever one of them is not this row's.
  void multiply(const RowsOfResidue& rows) const {
    std::vector<int> made(static_cast<std::size_t>(k_));
    for (std::int64_t x = 0; x < ceil_div(rows.view.cols, kBox) * kBox; ++x) {
      const bool here = x >= rows.shift && x < rows.view.cols;  // cleared before, cut by the map after
      const std::int64_t k = x - rows.shift;                    // the column operand's row
      ASSERT_EQ(here, k >= 0 && k < k_);
      if (here) ++made[static_cast<std::size_t>(k)];
    }
    ASSERT_TRUE(std::all_of(made.begin(), made.end(), [](int times) { return times == 1; }));
  }
  void write(const TileOfResidue& tile, std::int64_t first_col) {
    const RowsOfResidue d = rows_of_residue(args_.d, tiles_.residues, tile.residue);
    const OwnColumns own = {.begin = static_cast<int>(d.shift), .end = static_cast<int>(d.view.cols)};
    for (std::int64_t row = tile.row; row < std::min(tile.row + tile_.n, d.view.rows); ++row) {
      for (std::int64_t word = first_col; word < first_col + tile_.m; word += 8) {
        ASSERT_EQ(address(d.view, row, word) % 16, 0u);
        const bool whole = own.whole(static_cast<int>(word));
        for (std::int64_t x = word; x < word + 8; ++x) {
          ASSERT_TRUE(!whole || own.has(static_cast<int>(x)));
          if (!own.has(static_cast<int>(x))) continue;
          Place& place = written_[address(d.view, row, x)];
          // From that row of the row operand, and as many columns of the column operand earlier.
          place = {.row = tile.residue + row * tiles_.residues, .col = x - d.shift, .times = place.times + 1};
        }
      }
    }
  }

  GemmArgs args_;
  Tile tile_;
  ResidueTiles tiles_;
  std::int64_t k_;
  std::map<std::uintptr_t, Place> written_;
};

TEST(Residues, TilesOfOneWriteEveryElementOnceAndMakeEveryProductOnce) {
  Draw draw;
  int aligned = 0;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t n = draw(1, 90), wide = draw(1, 700), narrow = draw(1, 70);
    const Tile tile = {.m = 64 * draw(1, 4), .n = 16 * draw(1, 4)};
    const bool forward = i % 2 == 0;
    const std::int64_t m = forward ? wide : narrow, k = forward ? narrow : wide;
    const ConstMatrixView a = forward ? draw.aligned(m, k) : draw.aligned(k, m);
    const ConstMatrixView b = forward ? draw.aligned(n, k) : draw.matrix(n, k), d = forward ? draw.matrix(n, m) : draw.aligned(n, m);
    const GemmArgs args = args_of(a, forward ? Major::k : Major::m, b, Major::k, d);
    SCOPED_TRACE(concat(forward ? "forward " : "dgrad ", m, "x", n, "x", k, " tile ", tile.m, "x", tile.n, " pitches ", b.ld, " ", d.ld));
    const std::string refused = kUnalignedDeferredKernel.refuse(problem_of(args), h200());
    if (refused.starts_with("rows that start on 16 bytes")) {  // then there are no residues
      ++aligned;
      continue;
    }
    ASSERT_EQ(refused, "");
    ResidueLaunch launch(args, tile);
    launch.run();
    launch.expect_whole();
    if (HasFailure()) return;
  }
  EXPECT_LT(aligned, 10);
}

GemmProblem packed(GemmRole role, std::int64_t out, std::int64_t in, std::int64_t tokens) {
  const auto alignment = [](std::int64_t pitch) { return alignment_of(0, 2 * pitch); };
  GemmProblem p = {.role = role, .m = out, .n = tokens, .k = in, .operand_dtype = DType::bf16, .output_dtype = DType::bf16};
  p.a_pitch = p.b_pitch = in, p.d_pitch = out;
  if (role == GemmRole::dgrad) p.m = in, p.k = out, p.a_major = Major::m, p.b_pitch = out, p.d_pitch = in;
  if (role == GemmRole::wgrad) {
    p.m = in, p.n = out, p.k = tokens, p.a_major = Major::m, p.b_major = Major::n, p.b_pitch = out, p.d_pitch = in;
  }
  p.a_alignment = alignment(p.a_pitch), p.b_alignment = alignment(p.b_pitch), p.d_alignment = alignment(p.d_pitch);
  return p;
}

TEST(Residues, PartsOfTheLastTilesCoverTheirKOnce) {
  int cut_plans = 0;
  for (const auto& [n, k] : {std::array<std::int64_t, 2>{5120, 33708}, {16384, 50257}, {4095, 151937}, {700, 1023}, {9, 77}}) {
    for (const Tile tile : kUnalignedDeferredTiles) {
      for (const int wanted : {0, 1, 3, 8}) {
        const GemmProblem problem = packed(GemmRole::dgrad, k, 1024, n);
        const GemmPlan plan = kUnalignedDeferredKernel.plan(problem, tile, h200(), wanted);
        EXPECT_EQ(plan, kUnalignedDeferredKernel.plan(problem, tile, h200(), plan.split)) << "a stored plan says the same again";
        const int tiles = static_cast<int>(plan.tiling.tiles);
        const int whole = static_cast<int>(plan.whole_tiles), cut = tiles - whole;
        EXPECT_EQ(cut, split_tiles(tiles, plan.tiling.slots, plan.split));
        EXPECT_EQ(plan.items(), whole + cut * plan.split);
        cut_plans += cut > 0 ? 1 : 0;
        EXPECT_EQ(plan.workspace_bytes, std::int64_t{cut} * plan.split * tile.m * tile.n * 4);
        const int stages = static_cast<int>(ceil_div(k, kKTile));
        std::vector<int> taken(static_cast<std::size_t>(tiles));  // stages, in order
        for (int item = 0; item < whole + cut * plan.split; ++item) {
          const TileSlice part = tile_by_tile(item, whole, plan.split);
          const StagesOfK of = stages_of_slice(stages, part.part, item < whole ? 1 : plan.split);
          ASSERT_LT(of.begin, of.end);
          ASSERT_EQ(of.begin, taken[static_cast<std::size_t>(part.tile)]);
          taken[static_cast<std::size_t>(part.tile)] = of.end;
        }
        EXPECT_EQ(std::count(taken.begin(), taken.end(), stages), tiles);
      }
    }
  }
  EXPECT_GE(cut_plans, 10);
}

TEST(Residues, EachKIsTakenOnceWithTheSameRowOfBothOperands) {
  Draw draw;
  for (int i = 0; i < 500; ++i) {
    const std::int64_t m = draw(1, 40), n = draw(1, 90), k = draw(1, 1200);
    const ConstMatrixView x = draw.aligned(k, m), dy = draw.matrix(k, n);
    const GemmArgs args = args_of(x, Major::m, dy, Major::n, draw.aligned(n, m));
    ASSERT_EQ(kUnalignedKernel.refuse(problem_of(args), h200()).empty(), problem_of(args).b_alignment < 16);
    const ResiduesOfK of = residues_of_k(problem_of(args));
    std::vector<int> taken(static_cast<std::size_t>(k));
    std::int64_t blocks = 0;
    for (std::int64_t residue = 0; residue < of.used; ++residue) {
      const RowsOfResidue rows = rows_of_residue(dy, of.residues, residue), cols = rows_of_residue(x, of.residues, residue);
      ASSERT_EQ(rows.view.rows, cols.view.rows) << "one ends where the other does";
      ASSERT_EQ(cols.shift, 0);
      blocks += ceil_div(rows.view.rows, kBox);
      for (std::int64_t row = 0; row < rows.view.rows; ++row) {
        const std::int64_t token = residue + row * of.residues;
        ++taken[static_cast<std::size_t>(token)];
        ASSERT_EQ(address(cols.view, row, 0), address(x, token, 0));
        ASSERT_EQ(address(rows.view, row, rows.shift), address(dy, token, 0));
      }
    }
    ASSERT_EQ(blocks, of.blocks);
    ASSERT_TRUE(std::all_of(taken.begin(), taken.end(), [](int times) { return times == 1; }));
  }
}

// TMA's swizzle of 128 bytes: bits 4 to 6 of an address within 1024 bytes are its line's, bits 7 to 9, added without carry. An
// even column and the next share a word, which is loaded whole.
TEST(Residues, AStageHoldsEveryElementThatAShiftReaches) {
  constexpr unsigned kColumns = 128, kEdge = 49152;
  for (unsigned col = 0; col < kColumns + 7; ++col) {
    for (unsigned k = 0; k < kKTile; ++k) {
      const unsigned line = k * 128 + col % 64 * 2, boxed = col / 64 * kKTile * 128 + (line ^ (line >> 3 & 0x70));
      const unsigned at = in_stage(k, col, kColumns, kEdge);
      ASSERT_EQ(at, col < kColumns ? boxed : kEdge + k * 16 + (col - kColumns) * 2);
      ASSERT_EQ(at + next_8_k(at, kEdge), in_stage(k + 8, col, kColumns, kEdge));
      if (col % 2 == 0) {
        ASSERT_EQ(at % 4, 0u);
        ASSERT_EQ(at + 2, in_stage(k, col + 1, kColumns, kEdge));
      }
    }
  }
}

TEST(Residues, AVocabularyThatNoOnePaddedRunsOnWgmma) {
  for (const auto& [out, in, tokens] : {std::array<std::int64_t, 3>{33708, 1024, 5120}, {50257, 768, 16384}, {151937, 1024, 4095}}) {
    EXPECT_EQ(name_of(choose(packed(GemmRole::forward, out, in, tokens), h200()).composition), "unaligned/deferred");
    EXPECT_EQ(name_of(choose(packed(GemmRole::dgrad, out, in, tokens), h200()).composition), "unaligned/deferred");
    GemmProblem wgrad = packed(GemmRole::wgrad, out, in, tokens);
    EXPECT_EQ(name_of(choose(wgrad, h200()).composition), "unaligned");
    wgrad.output_dtype = DType::f32;
    wgrad.epilogue.accumulate = wgrad.epilogue.bias_gradient = true;
    EXPECT_EQ(name_of(choose(wgrad, h200()).composition), "unaligned");
  }
}

TEST(Residues, AlignedRowsAreLeftToTheOthers) {
  for (const GemmProblem& problem : {packed(GemmRole::forward, 4096, 1024, 5120), packed(GemmRole::dgrad, 4096, 1024, 65536),
                                     packed(GemmRole::wgrad, 4096, 1024, 5120), packed(GemmRole::forward, 768, 65536, 768)}) {
    std::int64_t refuse = 0;
    for (const GemmKernel* row : {&kUnalignedDeferredKernel, &kUnalignedKernel, &kTensorCoreResiduesKernel}) {
      if (row->refuse(problem, h200()) == "rows that start on 16 bytes need no residues.") ++refuse;
    }
    EXPECT_GE(refuse, 1) << "of those for such majors";
    for (const GemmPlan& plan : gemm_candidates(problem, h200()))
      EXPECT_EQ(name_of(plan.composition).find("residues"), std::string_view::npos);
  }
}

TEST(Residues, RowsSayWhatTheyRefuse) {
  const auto expect = [](const GemmKernel& row, const GemmProblem& problem, const std::string& text) {
    EXPECT_NE(row.refuse(problem, h200()).find(text), std::string::npos) << name_of(row) << ": " << row.refuse(problem, h200());
  };
  const GemmProblem forward = packed(GemmRole::forward, 50257, 768, 256), dgrad = packed(GemmRole::dgrad, 50257, 768, 256),
                    wgrad = packed(GemmRole::wgrad, 50257, 768, 256);
  expect(kUnalignedDeferredKernel, wgrad, "must lie along K");
  expect(kUnalignedKernel, forward, "both operands must lie across it");
  expect(kUnalignedKernel, dgrad, "both operands must lie across it");
  GemmProblem other = forward;
  other.epilogue.bias = true;
  expect(kUnalignedDeferredKernel, other, "has an epilogue");
  other = forward;
  other.output_dtype = DType::f32;
  expect(kUnalignedDeferredKernel, other, "not in f32");
  other = forward;
  other.b_alignment = 2;
  expect(kUnalignedDeferredKernel, other, "moves the other's K");
  other = dgrad;
  other.d_alignment = 2;
  expect(kUnalignedDeferredKernel, other, "columns of D");
  other = dgrad;
  other.a_alignment = 2;
  expect(kUnalignedDeferredKernel, other, "base and pitch of A");
  other = wgrad;
  other.epilogue.accumulate = true;
  expect(kUnalignedKernel, other, "in f32 alone");
  other.epilogue = {.bias = true};
  expect(kUnalignedKernel, other, "another epilogue");
}

TEST(Residues, PlansFitTheDevice) {
  for (const Tile tile : kUnalignedDeferredTiles) {
    const GemmPlan plan = kUnalignedDeferredKernel.plan(packed(GemmRole::dgrad, 50257, 768, 9), tile, h200(), 0);
    EXPECT_EQ(plan.tiling.tiles_n, 8) << "a tile for each residue, of which one has two rows";
    EXPECT_GE(plan.stages, 3);
  }
  for (const Tile tile : kUnalignedTiles) {
    EXPECT_LE(unaligned_shared_bytes(tile), h200().shared_bytes);
    EXPECT_GE(realigned_stages(tile), 3);
  }
  EXPECT_EQ(residues_of_k(packed(GemmRole::wgrad, 50257, 768, 5)).used, 5);
}

// What the sweep on a GPU would run, and of it what these rows turn down.
TEST(Residues, TheSweepReachesThem) {
  for (const GemmKernel* row : {&kUnalignedDeferredKernel, &kUnalignedKernel}) {
    std::mt19937 random(11);
    const std::vector<gemm_sweep::Case> cases = gemm_sweep::cases_of(*row, h200(), row->tiles.first(1), {.ks = {1, 2, 7, 64, 129, 200}});
    EXPECT_GE(cases.size(), 30u);
    std::int64_t refused = 0, narrow = 0;
    for (const gemm_sweep::Case& c : cases) {
      gemm_sweep::Operands operands(c, random);
      const GemmProblem problem = problem_of(operands.args(c));
      const bool aligned = sides_in_memory(problem).row_alignment >= 16 &&
                           (row == &kUnalignedKernel || problem.d_alignment >= 16);  // as packed rows happen to be
      EXPECT_EQ(!row->refuse(problem, h200()).empty(), aligned) << row->refuse(problem, h200());
      if (aligned) ++refused;
      if (problem.b_alignment < 16 || problem.a_alignment < 16 || problem.d_alignment < 16) ++narrow;
    }
    EXPECT_LE(4 * refused, static_cast<std::int64_t>(cases.size())) << name_of(*row);
    EXPECT_GE(4 * narrow, static_cast<std::int64_t>(cases.size())) << name_of(*row);
  }
}

}  // namespace
}  // namespace tilewave
