// Lines of prose that keep to a page.
#include "app/text/page.h"

#include <gtest/gtest.h>

#include "app/text/terminal.h"
#include "tests/app/terminal.h"

namespace tilewave {
namespace {

constexpr Page kNarrow{.columns = 20};

TEST(Page, ProseBreaksAtSpacesAndHangsIn) {
  EXPECT_EQ(wrapped("short", kNarrow), "short");
  EXPECT_EQ(wrapped("twenty characters ok", kNarrow), "twenty characters ok");
  EXPECT_EQ(wrapped("twenty-one characters and then some more", kNarrow), "twenty-one\n  characters and\n  then some more");
  EXPECT_EQ(wrapped("  further in it goes on further in", kNarrow), "  further in it goes\n    on further in");
  EXPECT_EQ(wrapped("memory    1 GiB of weights, and more", kNarrow, 10), "memory    1 GiB of\n          weights,\n          and more");
  EXPECT_EQ(wrapped("one\n\ntwo", kNarrow), "one\n\ntwo");
  EXPECT_EQ(wrapped("it takes some 1,037.5 us", kNarrow), "it takes some\n  1,037.5 us") << "a number stays with its unit";
  EXPECT_EQ(wrapped("it takes tile 128x160 here", kNarrow), "it takes tile\n  128x160 here");
}

TEST(Page, AWordLongerThanALineStaysWhole) {
  const std::string path(30, 'p');
  EXPECT_EQ(wrapped(path, kNarrow), path);
  EXPECT_EQ(wrapped("run folder " + path + " is there", kNarrow), "run folder\n  " + path + "\n  is there");
}

TEST(Page, CharactersCountAndNotBytes) {
  EXPECT_EQ(width_of("fünf"), 4U);
  EXPECT_EQ(width_of("\xff\xfe"), 2U) << "bytes that are no UTF-8";
  EXPECT_EQ(wrapped("äöüäöüäöü äöüäöüäöüä x", kNarrow), "äöüäöüäöü äöüäöüäöüä\n  x");
}

TEST(Page, IsATerminalsUpToAHundredColumns) {
  for (const auto& [columns, expected] : {std::pair<unsigned short, std::size_t>{80, 80}, {100, 100}, {200, 100}, {3, 40}, {0, 80}}) {
    Terminal terminal(columns);
    EXPECT_EQ(page_of(terminal.descriptor(), Columns::fitting).columns, expected) << columns;
    EXPECT_EQ(page_of(terminal.descriptor(), Columns::all).columns, Page::kUnbounded);
  }
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(page_of(ends[1], Columns::fitting).columns, 100U);
  EXPECT_FALSE(terminal_columns(ends[1]));
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace tilewave
