#include "framework/io/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "framework/io/checksum.h"
#include "kernels/core/error.h"
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

// A writer that is killed at any of its calls leaves nothing behind for ever: the next one of the same file takes it away.
TEST(File, TheNextWriterRemovesWhatAKilledOneLeft) {
  int left = 0;
  bool died = true;
  for (int call = 0; died; ++call) {
    const MemoryFolder folder;
    put(folder / "a", "old");
    put(folder / ".b.partial-1234", "another file's");
    put(folder / ".a.partial-notes", "a person's");
    const pid_t child = ::fork();
    if (child == 0) {
      const Faults faults({.fault = Fault::death, .call = call});
      write_file_atomically(folder / "a", "new");
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    died = WEXITSTATUS(status) == 77;
    left += names_in(folder.path()).size() > 3 ? 1 : 0;
    write_file_atomically(folder / "a", "newer");
    EXPECT_EQ(contents_of(folder / "a"), "newer");
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{".a.partial-notes", ".b.partial-1234", "a"})) << "call " << call;
  }
  EXPECT_GE(left, 4) << "flock, write, fsync, close, rename";
}

// Two writers of one file, also with the same process number, as containers give them: the last to finish wins.
TEST(File, AWriterLeavesTheTemporaryFileOfALiveOneAlone) {
  const MemoryFolder folder;
  write_file_atomically(folder / "a", [&](OutputFile& outer) {
    outer.write("outer");
    write_file_atomically(folder / "a", "inner");
    EXPECT_EQ(contents_of(folder / "a"), "inner");
  });
  EXPECT_EQ(contents_of(folder / "a"), "outer");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(File, SaysBeforehandWhereAResultCannotGo) {
  const MemoryFolder folder;
  const std::string path = folder.path().string();
  put(folder / "file", "");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto refused = [](const fs::path& output) { return sentence_of<InputError>([&] { check_output_file("--out", output); }); };
  EXPECT_EQ(refused(folder / "none" / "deep" / "a"),
            "--out " + path + "/none/deep/a: there is no folder " + path + "/none; make it, or name a file in another one.");
  EXPECT_EQ(refused(folder / "file" / "a"),
            "--out " + path + "/file/a: " + path + "/file is a file, not a folder; name a file in a folder.");
  EXPECT_EQ(refused(folder.path()), "--out " + path + ": cannot write: Is a directory; name a file, not a folder.");
  EXPECT_NE(refused(folder / "pipe").find("is a device or pipe"), std::string::npos);
  EXPECT_NE(refused("/dev/null"), "");
  EXPECT_EQ(refused(folder / "new"), "");
  EXPECT_EQ(refused(folder / "file"), "");
  EXPECT_EQ(refused("name_alone"), "");
  const auto no_folder = [](const fs::path& output) { return sentence_of<InputError>([&] { check_output_folder("--run", output); }); };
  EXPECT_EQ(no_folder(folder / "file" / "run"), "--run " + path + "/file/run: " + path + "/file is a file, not a folder; name a folder.");
  EXPECT_EQ(no_folder(folder / "file"), "--run " + path + "/file: " + path + "/file is a file, not a folder; name a folder.");
  EXPECT_EQ(no_folder(folder / "none" / "run"), "") << "it is made, with what is above it";
  EXPECT_EQ(no_folder(""), "");
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
  const Faults faults({.call = 2, .error = ENOSPC});  // open, flock, write
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
