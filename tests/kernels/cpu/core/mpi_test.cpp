// Which MPI libraries are spoken to, where they are looked for, and the sentence where there is none.
#include "kernels/cpu/core/mpi.h"

#include <cstdlib>

#include "kernels/core/communicator.h"
#include "tests/kernels/support.h"

namespace tilewave {
namespace {

TEST(MpiKind, IsOpenMpi4And5Alone) {
  EXPECT_EQ(mpi_kind("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022").name, "Open MPI 4.1.4");
  EXPECT_EQ(mpi_kind("Open MPI v4.1.4, package: Debian OpenMPI").refused, "");
  EXPECT_EQ(mpi_kind("Open MPI v5.0.7, package: Open MPI root@a").name, "Open MPI 5.0.7");
  EXPECT_EQ(mpi_kind("Open MPI v5.0.7, package: Open MPI root@a").refused, "");
  const auto refused = [](const char* version, const std::string& name) {
    const MpiKind kind = mpi_kind(version);
    EXPECT_EQ(kind.name, name);
    EXPECT_NE(kind.refused.find(concat("speaks Open MPI 4 and 5, whose libraries are called libmpi.so.40, and not ", name, ";")),
              std::string::npos)
        << kind.refused;
    EXPECT_NE(kind.refused.find("libopenmpi3 and openmpi-bin"), std::string::npos) << kind.refused;
  };
  refused("Open MPI v3.1.6, package: a", "Open MPI 3.1.6");
  refused("MPICH Version:      4.0.2\nMPICH Release date: Thu Apr", "MPICH 4.0.2");
  refused("MPICH Version:", "MPICH");
  refused("Intel(R) MPI Library 2021.6 for Linux* OS\n", "Intel(R) MPI Library 2021.6 for Linux* OS");
  EXPECT_NE(mpi_kind("").refused.find("what was opened is no MPI"), std::string::npos);
}

class FindMpi : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("TILEWAVE_MPI_LIBRARY"); }
};

TEST_F(FindMpi, TakesAVariableAtItsWord) {
  setenv("TILEWAVE_MPI_LIBRARY", "/nowhere/libmpi.so.40", 1);
  const FoundLibrary nowhere = find_mpi();
  EXPECT_EQ(nowhere.path, "");
  EXPECT_EQ(nowhere.looked, std::vector<std::string>{"TILEWAVE_MPI_LIBRARY=/nowhere/libmpi.so.40 (not there)"});
  EXPECT_EQ(
      nowhere.refused,
      "no library could be opened at TILEWAVE_MPI_LIBRARY=/nowhere/libmpi.so.40 (not there); name Open MPI's libmpi.so.40, or unset it.");
  setenv("TILEWAVE_MPI_LIBRARY", "libm.so.6", 1);
  const FoundLibrary mathematics = find_mpi();
  EXPECT_EQ(mathematics.path, "");
  EXPECT_NE(mathematics.refused.find("what was opened is no MPI"), std::string::npos) << mathematics.refused;
}

TEST_F(FindMpi, LooksOnTheLoadersPathAndSaysWhatItFound) {
  unsetenv("TILEWAVE_MPI_LIBRARY");
  const FoundLibrary mpi = find_mpi();
  ASSERT_GE(mpi.looked.size(), 2U);
  EXPECT_EQ(mpi.looked[0], "TILEWAVE_MPI_LIBRARY (not set)");
  EXPECT_TRUE(mpi.looked[1].starts_with("libmpi.so.40 of the loader's path (")) << mpi.looked[1];
  EXPECT_EQ(mpi.path.empty(), !mpi.refused.empty()) << "found, or a sentence";
  if (!mpi.path.empty()) {
    EXPECT_TRUE(mpi.version.starts_with("Open MPI ")) << mpi.version;
  }
}

}  // namespace
}  // namespace tilewave
