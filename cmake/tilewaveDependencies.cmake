# Libraries that tilewave links: found here for its own build and, installed beside tilewaveConfig.cmake, for its users.
find_package(Threads REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(highway REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
