# The CUDA half of the kernels' library: portable sources as machine code for compute capability 8.0 and 9.0 and as PTX for what
# comes later; those that use TMA for 9.0 and what comes later; those that use Hopper's own instructions for 9.0a alone.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS /usr/local/cuda/bin)
endif()
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  message(FATAL_ERROR "TILEWAVE_CUDA needs nvcc, which is neither on the PATH nor in /usr/local/cuda/bin; install NVIDIA's CUDA toolkit "
                      "(13.0 was tried), or name its nvcc with -D CMAKE_CUDA_COMPILER=FILE")
endif()
enable_language(CUDA)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)

# Sources of kernels/cuda for the architectures given, with the house's settings.
function(tilewave_cuda_objects name architectures)
  add_library(${name} OBJECT ${ARGN})
  set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES "${architectures}" POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE -std=c++20 --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers
                                         $<$<VERSION_GREATER_EQUAL:${CMAKE_CUDA_COMPILER_VERSION},12.8>:--compress-mode=size>
                                         $<$<BOOL:${TILEWAVE_WERROR}>:-Werror=all-warnings>)
  target_link_libraries(tilewave_kernels PRIVATE $<TARGET_OBJECTS:${name}>)
  set_property(GLOBAL APPEND_STRING PROPERTY tilewave_cuda_architectures "${architectures} ")  # as tilewave --version says them
endfunction()

include(cmake/tilewaveInstances.cmake)
file(GLOB cuda_sources CONFIGURE_DEPENDS kernels/cuda/core/*.cu)
list(APPEND cuda_sources kernels/cuda/gemm/gemm.cu kernels/cuda/gemm/reference/library_pass.cu kernels/cuda/gemm/sm80/persistent_problem.cu
                         kernels/cuda/gemm/split.cu)
set(hopper_sources "")
foreach(operation IN LISTS TILEWAVE_OPERATIONS)  # one file, or a room where it tells more than one story
  if(EXISTS ${PROJECT_SOURCE_DIR}/kernels/cuda/ops/${operation}.cu)
    list(APPEND cuda_sources kernels/cuda/ops/${operation}.cu)
    continue()
  endif()
  file(GLOB parts CONFIGURE_DEPENDS kernels/cuda/${operation}/*.cu)
  if(NOT parts)
    message(FATAL_ERROR "operation ${operation} has neither kernels/cuda/ops/${operation}.cu nor kernels/cuda/${operation}/")
  endif()
  set(warpgroup_parts ${parts})
  list(FILTER parts EXCLUDE REGEX "/warpgroup_[^/]*$")
  list(FILTER warpgroup_parts INCLUDE REGEX "/warpgroup_[^/]*$")  # Hopper's own instructions
  list(APPEND cuda_sources ${parts})
  list(APPEND hopper_sources ${warpgroup_parts})
endforeach()
foreach(kernel IN LISTS TILEWAVE_CUDA_GEMM_KERNELS)
  list(APPEND cuda_sources kernels/cuda/gemm/${kernel}.cu ${${kernel}_instances})
endforeach()
set(bulk_copy_sources "")
foreach(kernel IN LISTS TILEWAVE_TMA_GEMM_KERNELS)
  list(APPEND bulk_copy_sources kernels/cuda/gemm/${kernel}.cu ${${kernel}_instances})
endforeach()
# The oracle rounds every product of its epilogue, as a CPU's does.
set_source_files_properties(kernels/cuda/gemm/reference/naive.cu PROPERTIES COMPILE_OPTIONS --fmad=false)
tilewave_cuda_objects(tilewave_cuda "80-real;90" ${cuda_sources})
tilewave_cuda_objects(tilewave_bulk_copy "90" ${bulk_copy_sources})
if(TILEWAVE_HOPPER_GEMM_KERNELS)
  foreach(kernel IN LISTS TILEWAVE_HOPPER_GEMM_KERNELS)
    list(APPEND hopper_sources kernels/cuda/gemm/${kernel}.cu ${${kernel}_instances})
  endforeach()
  list(APPEND hopper_sources kernels/cuda/gemm/sm90/persistent_deferred_store_last_columns.cu)
  tilewave_cuda_objects(tilewave_hopper "90a-real" ${hopper_sources})
endif()
foreach(name tilewave_bulk_copy tilewave_hopper)
  if(TILEWAVE_TRAPPING_WAITS AND TARGET ${name})
    target_compile_definitions(${name} PRIVATE TILEWAVE_TRAPPING_WAITS)
  endif()
endforeach()

find_package(CUDAToolkit REQUIRED)
# NVIDIA's libraries are opened when a recipe asks for them; a host compiler reads their headers.
target_sources(tilewave_kernels PRIVATE kernels/cuda/gemm/reference/libraries.cpp)
set_source_files_properties(kernels/cuda/gemm/reference/libraries.cpp PROPERTIES INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS}")
target_link_libraries(tilewave_kernels PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
