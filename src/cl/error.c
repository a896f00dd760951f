/* SPDX-License-Identifier: MIT */
#include "cl/private.h"

/* X(name without CL_) */
#define CL_ERROR_MAP(X)                                                                            \
    X(SUCCESS)                                                                                     \
    X(DEVICE_NOT_FOUND)                                                                            \
    X(DEVICE_NOT_AVAILABLE)                                                                        \
    X(COMPILER_NOT_AVAILABLE)                                                                      \
    X(MEM_OBJECT_ALLOCATION_FAILURE)                                                               \
    X(OUT_OF_RESOURCES)                                                                            \
    X(OUT_OF_HOST_MEMORY)                                                                          \
    X(PROFILING_INFO_NOT_AVAILABLE)                                                                \
    X(MEM_COPY_OVERLAP)                                                                            \
    X(IMAGE_FORMAT_MISMATCH)                                                                       \
    X(IMAGE_FORMAT_NOT_SUPPORTED)                                                                  \
    X(BUILD_PROGRAM_FAILURE)                                                                       \
    X(MAP_FAILURE)                                                                                 \
    X(MISALIGNED_SUB_BUFFER_OFFSET)                                                                \
    X(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)                                                   \
    X(COMPILE_PROGRAM_FAILURE)                                                                     \
    X(LINKER_NOT_AVAILABLE)                                                                        \
    X(LINK_PROGRAM_FAILURE)                                                                        \
    X(DEVICE_PARTITION_FAILED)                                                                     \
    X(KERNEL_ARG_INFO_NOT_AVAILABLE)                                                               \
    X(INVALID_VALUE)                                                                               \
    X(INVALID_DEVICE_TYPE)                                                                         \
    X(INVALID_PLATFORM)                                                                            \
    X(INVALID_DEVICE)                                                                              \
    X(INVALID_CONTEXT)                                                                             \
    X(INVALID_QUEUE_PROPERTIES)                                                                    \
    X(INVALID_COMMAND_QUEUE)                                                                       \
    X(INVALID_HOST_PTR)                                                                            \
    X(INVALID_MEM_OBJECT)                                                                          \
    X(INVALID_IMAGE_FORMAT_DESCRIPTOR)                                                             \
    X(INVALID_IMAGE_SIZE)                                                                          \
    X(INVALID_SAMPLER)                                                                             \
    X(INVALID_BINARY)                                                                              \
    X(INVALID_BUILD_OPTIONS)                                                                       \
    X(INVALID_PROGRAM)                                                                             \
    X(INVALID_PROGRAM_EXECUTABLE)                                                                  \
    X(INVALID_KERNEL_NAME)                                                                         \
    X(INVALID_KERNEL_DEFINITION)                                                                   \
    X(INVALID_KERNEL)                                                                              \
    X(INVALID_ARG_INDEX)                                                                           \
    X(INVALID_ARG_VALUE)                                                                           \
    X(INVALID_ARG_SIZE)                                                                            \
    X(INVALID_KERNEL_ARGS)                                                                         \
    X(INVALID_WORK_DIMENSION)                                                                      \
    X(INVALID_WORK_GROUP_SIZE)                                                                     \
    X(INVALID_WORK_ITEM_SIZE)                                                                      \
    X(INVALID_GLOBAL_OFFSET)                                                                       \
    X(INVALID_EVENT_WAIT_LIST)                                                                     \
    X(INVALID_EVENT)                                                                               \
    X(INVALID_OPERATION)                                                                           \
    X(INVALID_GL_OBJECT)                                                                           \
    X(INVALID_BUFFER_SIZE)                                                                         \
    X(INVALID_MIP_LEVEL)                                                                           \
    X(INVALID_GLOBAL_WORK_SIZE)                                                                    \
    X(INVALID_PROPERTY)                                                                            \
    X(INVALID_IMAGE_DESCRIPTOR)                                                                    \
    X(INVALID_COMPILER_OPTIONS)                                                                    \
    X(INVALID_LINKER_OPTIONS)                                                                      \
    X(INVALID_DEVICE_PARTITION_COUNT)

static const struct {
    cl_int error;
    const char *name;
} errors[] = {
#define ENTRY(name) {CL_##name, "CL_" #name},
    CL_ERROR_MAP(ENTRY)
#undef ENTRY
};

const char *qn_cl_error_name(cl_int error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "an error of OpenCL without a name";
}

qn_status qn_cl_check(const struct qn_log *log, cl_int error, const char *what)
{
    if (error == CL_SUCCESS)
        return QN_OK;
    return qn_fail(log, QN_ERR_DEVICE, "%s: %s (%d)", what, qn_cl_error_name(error), error);
}
