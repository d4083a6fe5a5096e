#include "framework/io/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

#include "framework/io/checksum.h"
#include "kernels/error.h"
#include "tests/framework/io/faults.h"
#include "tests/framework/io/files.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

TEST(File, ReadsWithinItsBound) {
  const MemoryFolder folder;
  put(folder / "a", "12345");
  put(folder / "empty", "");
  EXPECT_EQ(read_file(folder / "a", 5), "12345");
  EXPECT_EQ(read_file(folder / "empty", 0), "");
  EXPECT_EQ(sentence_of<InputError>([&] { read_file(folder / "a", 4); }),
            (folder / "a").string() + ": is longer than the 4 bytes that are read of such a file; check the path.");
  fs::resize_file(folder / "empty", std::uintmax_t{1} << 40);
  EXPECT_NE(sentence_of<InputError>([&] { read_file(folder / "empty", 1 << 16); }), "") << "a terabyte is refused before it is asked for";
  EXPECT_NE(sentence_of<InputError>([] { read_file("/dev/zero", 1 << 16); }), "") << "a device has no length to look at beforehand";
}

TEST(File, SaysWhatCannotBeRead) {
  const MemoryFolder folder;
  EXPECT_EQ(sentence_of<InputError>([&] { read_file(folder / "absent", 9); }),
            (folder / "absent").string() + ": cannot open: No such file or directory; check the path.");
  EXPECT_EQ(sentence_of<InputError>([&] { read_file(folder.path(), 9); }),
            folder.path().string() + ": cannot read: Is a directory; name a file, not a folder.");
  EXPECT_NE(sentence_of<InputError>([&] { InputFile(folder.path()); }), "");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(sentence_of<InputError>([&] { InputFile(folder / "pipe"); }).find("is not a regular file"), std::string::npos);
}

TEST(File, ReadsAPipe) {
  const MemoryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { put(folder / "pipe", std::string(100'000, 'x')); });
  EXPECT_EQ(read_file(folder / "pipe", 100'000), std::string(100'000, 'x'));
  writer.join();
}

TEST(File, SaysThatAFileBecameShorter) {
  const MemoryFolder folder;
  put(folder / "a", "12345678");
  const InputFile file(folder / "a");
  fs::resize_file(folder / "a", 3);
  std::array<std::byte, 8> out{};
  EXPECT_NE(sentence_of<InputError>([&] { file.read(0, out); }).find("ended at byte 3"), std::string::npos);
}

TEST(File, WritesAtomically) {
  const MemoryFolder folder;
  const std::string large(3'000'000, 'y');  // beyond the buffer
  const FileDigest digest = write_file_atomically(folder / "a", [&](OutputFile& file) {
    file.write("head ");
    file.write(large);
    file.write(" tail");
  });
  EXPECT_EQ(contents_of(folder / "a"), "head " + large + " tail");
  EXPECT_EQ(digest, digest_file(folder / "a"));
  EXPECT_EQ(digest.bytes, 3'000'010);
  write_file_atomically(folder / "a", "new");
  EXPECT_EQ(contents_of(folder / "a"), "new");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(File, LeavesTheFormerFileWhenItsFillFails) {
  const MemoryFolder folder;
  put(folder / "a", "old");
  EXPECT_THROW(write_file_atomically(folder / "a",
                                     [](OutputFile& file) {
                                       file.write("half");
                                       throw Error("no more");
                                     }),
               Error);
  EXPECT_EQ(contents_of(folder / "a"), "old");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(File, FollowsALinkAndRefusesADevice) {
  const MemoryFolder folder;
  put(folder / "a", "old");
  fs::create_symlink("a", folder / "link");
  write_file_atomically(folder / "link", "new");
  EXPECT_EQ(contents_of(folder / "a"), "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(sentence_of<InputError>([&] { write_file_atomically(folder / "pipe", ""); }).find("name a file"), std::string::npos);
  EXPECT_NE(sentence_of<InputError>([&] { write_file_atomically(folder.path(), ""); }).find("name a file"), std::string::npos);
}

TEST(File, RemovesWhatAKilledProcessLeft) {
  const MemoryFolder folder;
  put(folder / ".a.partial-1234", "half");
  put(folder / ".hidden", "a person's");
  put(folder / "b.partial-7", "a person's");
  remove_stale_temporaries(folder.path());
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{".hidden", "b.partial-7"}));
}

TEST(File, OldOrNewAfterAFaultAtAnyCall) {
  for (const Fault fault : {Fault::once, Fault::from_then_on}) {
    for (const int error : {ENOSPC, EIO, EROFS}) {
      int call = 0;
      int silent = 0;
      for (bool struck = true; struck; ++call) {
        const MemoryFolder folder;
        put(folder / "a", "old");
        std::string complaint;
        {
          const Faults faults({.fault = fault, .call = call, .error = error});
          complaint = sentence_of<Error>([&] { write_file_atomically(folder / "a", "new"); });
          struck = faults.struck();
        }
        const std::string after = contents_of(folder / "a");
        EXPECT_TRUE(after == "new" || (after == "old" && !complaint.empty())) << "call " << call << ": " << after;
        silent += struck && complaint.empty() ? 1 : 0;
        if (!struck) {
          EXPECT_EQ(complaint, "");
        }
        if (fault == Fault::once) {
          EXPECT_EQ(names_in(folder.path()).size(), 1u) << "call " << call;
        }
      }
      EXPECT_EQ(silent, 1) << "only the failure to close the folder is without consequence";
      EXPECT_GE(call, 8) << "open, write, fsync, close, rename and the folder's three";
    }
  }
}

TEST(File, SignalsAndShortWritesDoNoHarm) {
  for (const Faults::Plan& plan : {Faults::Plan{.fault = Fault::once, .error = EINTR}, Faults::Plan{.fault = Fault::short_write}}) {
    bool struck = true;
    for (int call = 0; struck; ++call) {
      const MemoryFolder folder;
      const Faults faults({.fault = plan.fault, .call = call, .error = plan.error});
      make_folders(folder / "b" / "c");
      write_file_atomically(folder / "b" / "c" / "a", "a text that is written");
      EXPECT_EQ(contents_of(folder / "b" / "c" / "a"), "a text that is written") << "call " << call;
      struck = faults.struck();
    }
  }
}

TEST(File, FaultsHaveSentencesWithARemedy) {
  const MemoryFolder folder;
  const Faults faults({.call = 2, .error = ENOSPC});  // unlink, open, write
  const std::string complaint = sentence_of<Error>([&] { write_file_atomically(folder / "a", "new"); });
  EXPECT_TRUE(complaint.ends_with(": cannot write: No space left on device; free some space there or choose another folder.")) << complaint;
}

TEST(File, AnUnprivilegedUserIsToldOfAReadOnlyFolder) {
  const MemoryFolder folder;
  fs::create_directory(folder / "locked");
  put(folder / "locked" / "a", "old");
  put(folder / "secret", "s");
  fs::permissions(folder.path(), fs::perms(0755));
  fs::permissions(folder / "locked", fs::perms(0555));
  fs::permissions(folder / "secret", fs::perms(0000));
  EXPECT_EQ(in_unprivileged_child([&] {
              const std::string writing = sentence_of<Error>([&] { write_file_atomically(folder / "locked" / "a", "new"); });
              if (writing.find("Permission denied; change the permissions") == std::string::npos) return 1;
              if (sentence_of<Error>([&] { make_folders(folder / "locked" / "b"); }).find("Permission denied") == std::string::npos)
                return 2;
              if (sentence_of<InputError>([&] { read_file(folder / "secret", 9); }).find("Permission denied") == std::string::npos)
                return 3;
              return 0;
            }),
            0);
  EXPECT_EQ(contents_of(folder / "locked" / "a"), "old");
  fs::permissions(folder / "locked", fs::perms(0755));
}

TEST(File, MakesFoldersOnceAndSaysWhatIsInTheWay) {
  const MemoryFolder folder;
  make_folders(folder / "a" / "b");
  make_folders(folder / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder / "a" / "b"));
  put(folder / "file", "");
  EXPECT_NE(sentence_of<Error>([&] { make_folders(folder / "file"); }).find("File exists; move what is there"), std::string::npos);
  EXPECT_NE(sentence_of<Error>([&] { make_folders(folder / "file" / "b"); }), "");
}

TEST(File, SentencesHoldNoControlCharactersAndEnd) {
  EXPECT_EQ(printable("tab\tescape\x1b[31m"), "tab\\x09escape\\x1b[31m");
  EXPECT_EQ(printable(std::string_view("nul\0!", 5)), "nul\\x00!");
  EXPECT_EQ(printable(std::string(200, 'a')), std::string(120, 'a') + "...");
  EXPECT_EQ(printable(std::string(119, 'a') + "\xc3\xa9 and more"), std::string(119, 'a') + "...") << "no half UTF-8 character";
}

}  // namespace
}  // namespace tilewave
