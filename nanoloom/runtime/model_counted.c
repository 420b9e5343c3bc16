/* The public function of a model with outputs whose shapes depend on data. */
#include "handle.h"

NANOLOOM_PUBLIC const struct nanoloom_tensor *PUBLIC(output_of)(const HANDLE *handle,
                                                                int32_t index);
const struct nanoloom_tensor *PUBLIC(output)(int32_t index);

const struct nanoloom_tensor *PUBLIC(output_of)(const HANDLE *handle, int32_t index)
{
    int known = handle && handle->counted.known && PUBLIC(output)(index);
    return known ? &handle->counted.tensors[index] : NULL;
}
