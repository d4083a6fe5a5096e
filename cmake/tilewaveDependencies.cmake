# Libraries that tilewave links: found here for its own build and, installed beside tilewaveConfig.cmake, for its users, who may have
# asked whether there is a tilewave without requiring one.
set(required REQUIRED)
if("${CMAKE_FIND_PACKAGE_NAME}" STREQUAL tilewave AND NOT tilewave_FIND_REQUIRED)
  set(required QUIET)
endif()
find_package(Threads ${required})
find_package(tomlplusplus ${required})
find_package(nlohmann_json ${required})
find_package(PkgConfig ${required})
if(PkgConfig_FOUND)
  pkg_check_modules(highway ${required} IMPORTED_TARGET libhwy)
  pkg_check_modules(sentencepiece ${required} IMPORTED_TARGET sentencepiece)
endif()
