# Instances of a GEMM row's launch, each compiled in a source of its own so that they are compiled beside each other. The sources stand in
# the build tree; what there is stands in this list. Sets <row>_instances for every row of it.
set(majors_of_forward "Contiguous::along_depth, Contiguous::along_depth")
set(majors_of_dgrad "Contiguous::along_depth, Contiguous::across")
set(majors_of_wgrad "Contiguous::across, Contiguous::across")

# launch<element, arguments>(CudaQueue&, parameters) for the 16-bit elements.
function(tilewave_instances row name arguments launch parameters)
  foreach(element bf16 f16)
    set(source ${PROJECT_BINARY_DIR}/instances/${row}_${element}_${name}.cu)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
// From the list of cmake/tilewaveInstances.cmake.
#include "kernels/cuda/gemm/@row@.h"

namespace tilewave {

template void @launch@<@element@, @arguments@>(CudaQueue&, @parameters@);

}  // namespace tilewave
]])
    list(APPEND ${row}_instances ${source})
  endforeach()
  set(${row}_instances ${${row}_instances} PARENT_SCOPE)
endfunction()

foreach(role forward dgrad wgrad)
  tilewave_instances(tensor_core_persistent ${role} "${majors_of_${role}}" launch_persistent "const PersistentLaunch&")
  tilewave_instances(bulk_copy_mma ${role} "${majors_of_${role}}" launch_bulk_copy_mma "const BulkCopyLaunch&")
endforeach()
foreach(form accumulators activation elements)
  tilewave_instances(persistent_late_store ${form} DeferredForm::${form} launch_deferred_form "const WarpgroupGemm&, const GemmPlan&")
endforeach()
