// Tables keep to their page and lose nothing that is not said.
#include "app/text/table.h"

#include <gtest/gtest.h>
#include <sstream>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

const std::vector<Column> kColumns = {{.heading = "layer", .align = Align::left},
                                      {.heading = "role", .align = Align::left, .rank = 2},
                                      {.heading = "predicted time"},
                                      {.heading = "share", .rank = 1}};

std::string text_of(const Table& table, std::size_t columns) {
  std::ostringstream stream;
  table.print(stream, {.columns = columns});
  return stream.str();
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, width_of(line));
  return longest;
}

Table small() {
  Table table(kColumns);
  table.add({"ffn.up", "forward", "12.3 ms", "40.0 %"});
  table.add({"ffn.down", "dgrad", "1.234 ms", "4.0 %"});
  return table;
}

TEST(Table, NamesStandToTheLeftAndNumbersToTheRight) {
  EXPECT_EQ(text_of(small(), 100),
            "                   predicted\n"
            "layer     role          time   share\n"
            "ffn.up    forward    12.3 ms  40.0 %\n"
            "ffn.down  dgrad     1.234 ms   4.0 %\n");
}

TEST(Table, ColumnsGoByRankAndTheirNamesAreSaid) {
  EXPECT_EQ(text_of(small(), 27),
            "          predicted\n"
            "layer          time   share\n"
            "ffn.up      12.3 ms  40.0 %\n"
            "ffn.down   1.234 ms   4.0 %\n"
            "(--wide adds role)\n");
  const std::string least = text_of(small(), 24);
  EXPECT_NE(least.find("(--wide adds role,"), std::string::npos) << least;
  EXPECT_EQ(least.find("40.0 %"), std::string::npos) << least;
  EXPECT_NE(least.find("1.234 ms"), std::string::npos) << "what has no rank is always there\n" << least;
  EXPECT_EQ(text_of(small(), Page::kUnbounded).find("--wide"), std::string::npos);
}

TEST(Table, LongNamesBreakBehindWhatJoinsThem) {
  Table table({{.heading = "setting", .align = Align::left}, {.heading = "time"}});
  table.add({"wave_free_batch=nearest batch.source_tokens+batch.target_tokens=4096", "12.3 ms"});
  table.add({std::string(70, 'x'), "1 s"});
  for (const std::size_t columns : {20U, 40U, 60U}) EXPECT_LE(longest_line(text_of(table, columns)), columns);
  const std::string shown = text_of(table, 40);
  EXPECT_NE(shown.find("wave_free_batch=nearest          12.3 ms\n"), std::string::npos) << shown;
  std::string letters;  // nothing of a name is lost
  for (const char c : text_of(table, 40)) letters += c == 'x' ? "x" : "";
  EXPECT_EQ(letters, std::string(70, 'x'));
}

TEST(Table, SectionsAndRemarksKeepToThePageToo) {
  Table table(kColumns);
  table.section("encoder.*.self_attention.qkv");
  table.add({"a", "forward", "12.3 ms", "40.0 %"});
  table.remark("no cublaslt: it does not take what is asked for here, and says so in many words that need lines");
  const std::string shown = text_of(table, 50);
  EXPECT_LE(longest_line(shown), 50U) << shown;
  EXPECT_NE(shown.find("\nencoder.*.self_attention.qkv\n  a "), std::string::npos) << shown;
  EXPECT_NE(shown.find("\n  no cublaslt: it does"), std::string::npos) << shown;
}

TEST(Table, AColumnWithNothingInItIsNoColumn) {
  Table table(kColumns);
  table.add({"a", "", "1 s", "2 %"});
  EXPECT_EQ(text_of(table, 100).find("role"), std::string::npos);
  EXPECT_EQ(text_of(table, 12).find("role"), std::string::npos) << "--wide would not add it";
}

TEST(Table, ARowHasACellForEachColumn) {
  Table table(kColumns);
  EXPECT_THROW(table.add({"a"}), Error);
}

TEST(Table, ALiveOneHasTheWidthsDeclared) {
  std::vector<Column> columns = kColumns;
  columns[0].width = 10;
  std::ostringstream stream;
  LiveTable table(stream, {.columns = 40}, columns);
  table.add({"ffn.up", "fwd", "12.3 ms", "4 %"});
  EXPECT_EQ(stream.str(),
            "                  predicted\n"
            "layer       role       time  share\n"
            "ffn.up      fwd     12.3 ms    4 %\n");
  table.add({"a name longer than it", "fwd", "1 s", "4 %"});
  table.end();
  EXPECT_LE(longest_line(stream.str()), 40U) << stream.str();
  EXPECT_EQ(stream.str().find("--wide"), std::string::npos);
}

TEST(Table, CharactersStandInColumnsAndNotBytes) {
  Table table({{.heading = "name", .align = Align::left}, {.heading = "n"}});
  table.add({"fünf", "1"});
  table.add({"four", "2"});
  EXPECT_EQ(text_of(table, 80), "name  n\nfünf  1\nfour  2\n");
}

}  // namespace
}  // namespace tilewave
