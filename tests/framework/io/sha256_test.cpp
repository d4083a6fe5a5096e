#include "framework/io/sha256.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/shell.h"

namespace tilewave {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.add(bytes_of(text));
  return hash.digits();
}

// NIST's examples for FIPS 180-4 (SHA256.pdf, SHA2_Additional.pdf) and SHA256ShortMsg.rsp's first.
TEST(Sha256, PublishedValues) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("\xbd"), "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
  EXPECT_EQ(sha256(std::string(55, '\0')), "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7");
  EXPECT_EQ(sha256(std::string(56, '\0')), "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb");
  EXPECT_EQ(sha256(std::string(64, '\0')), "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 7);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.add(bytes_of(text.substr(0, cut)));
    hash.add(bytes_of(text.substr(cut)));
    ASSERT_EQ(hash.digits(), sha256(text)) << cut;
  }
}

TEST(Sha256, OfAFileOfSeveralPieces) {
  const TemporaryFolder folder;
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, (std::size_t{1} << 20) - 1, (std::size_t{2} << 20) + 17}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; i += 1000) text[i] = static_cast<char>(i >> 10);
    write_text(folder.path() / "file", text);
    EXPECT_EQ(sha256_of_file(folder.path() / "file"), sha256(text)) << size;
  }
}

}  // namespace
}  // namespace tilewave
