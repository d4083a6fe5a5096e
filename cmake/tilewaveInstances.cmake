# Instances of a GEMM kernel's launch, each compiled in a source of its own so that they are compiled beside each other. The sources stand in
# the build tree; what there is stands in this list. Sets <kernel>_instances for
# every kernel of it.
set(majors_of_forward "Contiguous::along_depth, Contiguous::along_depth")
set(majors_of_dgrad "Contiguous::along_depth, Contiguous::across")
set(majors_of_wgrad "Contiguous::across, Contiguous::across")

# launch<element, arguments>(CudaQueue&, parameters) for the 16-bit elements.
function(tilewave_instances kernel name arguments launch parameters)
  foreach(element bf16 f16)
    string(REPLACE "/" "_" file ${kernel}_${element}_${name})
    set(source ${PROJECT_BINARY_DIR}/instances/${file}.cu)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
// From the list of cmake/tilewaveInstances.cmake.
#include "kernels/cuda/gemm/@kernel@.h"

namespace tilewave {

template void @launch@<@element@, @arguments@>(CudaQueue&, @parameters@);

}  // namespace tilewave
]])
    list(APPEND ${kernel}_instances ${source})
  endforeach()
  set(${kernel}_instances ${${kernel}_instances} PARENT_SCOPE)
endfunction()

foreach(role forward dgrad wgrad)
  tilewave_instances(sm80/tensor_core_persistent ${role} "${majors_of_${role}}" launch_persistent "const PersistentLaunch&")
  tilewave_instances(sm80/bulk_copy_mma ${role} "${majors_of_${role}}" launch_bulk_copy_mma "const BulkCopyLaunch&")
endforeach()
foreach(form accumulators activation elements)
  tilewave_instances(sm90/persistent_deferred_store ${form} DeferredForm::${form} launch_deferred_form "const WarpgroupGemm&, const GemmPlan&")
endforeach()
