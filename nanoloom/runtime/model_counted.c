/* The public function of a model with outputs whose shapes depend on data. */
#include "handle.h"

NANOLOOM_PUBLIC const struct nanoloom_tensor *PUBLIC(output_of)(const HANDLE *handle,
                                                                int32_t index);
const struct nanoloom_tensor *PUBLIC(output)(int32_t index);

const struct nanoloom_tensor *PUBLIC(output_of)(const HANDLE *handle, int32_t index)
{
    if (!handle || !PUBLIC(output)(index))
        return NULL;
    if (handle->counted.known)
        return &handle->counted.tensors[index];
#if defined(NANOLOOM_SIZED) && !defined(NANOLOOM_GROWN)
    return handle->program ? &handle->program->outputs[index] : NULL;
#else
    return NULL;
#endif
}
