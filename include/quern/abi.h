/* SPDX-License-Identifier: MIT
 *
 * Whether a program and the library that it runs with mean the same by the structs of these
 * headers. Where the linker looks at version numbers it refuses a library of another ABI by itself;
 * this is for programs that load the library at run time, for bindings that write the structs once
 * more in another language, and for headers and libraries that come from different builds.
 */
#ifndef QUERN_ABI_H
#define QUERN_ABI_H

#include <quern/check.h>
#include <quern/contrastive.h>
#include <quern/data.h>
#include <quern/device.h>
#include <quern/drift.h>
#include <quern/generate.h>
#include <quern/graph.h>
#include <quern/graph_file.h>
#include <quern/group.h>
#include <quern/image.h>
#include <quern/io.h>
#include <quern/log.h>
#include <quern/metric.h>
#include <quern/model.h>
#include <quern/ops.h>
#include <quern/plan.h>
#include <quern/predict.h>
#include <quern/retrieval.h>
#include <quern/schedule.h>
#include <quern/status.h>
#include <quern/tensor.h>
#include <quern/text.h>
#include <quern/train.h>
#include <quern/tune.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of these headers. Versions with the same first number, or while that is 0 with the same two, have
 * the same ABI: structs keep their size and layout, functions their arguments. */
#define QN_VERSION "0.1.0"
#define QN_VERSION_MAJOR 0
#define QN_VERSION_MINOR 1
#define QN_VERSION_PATCH 0

/* The version of the library that runs, and its three numbers (may be NULL). Thread-safety: Safe.
 */
QN_API const char *qn_version(int numbers[3]);

/* What a caller takes a struct for. */
typedef struct qn_struct_info {
    const char *name; /* "qn_plan_params" */
    int64_t bytes;
    uint32_t layout; /* as in QN_STRUCT_LIST; 0: not compared */
} qn_struct_info;

/* Every struct whose fields callers see: X(name, layout), a checksum of its fields' names, types
 * and places, since one may change its meaning and not its size. Made by tests/lint/abi.py --write.
 */
#define QN_STRUCT_LIST(X)                                                                          \
    X(qn_adaptive_batch, 0xcef53cb6)                                                               \
    X(qn_array_params, 0x9dd76318)                                                                 \
    X(qn_attention_params, 0x76ce4dc1)                                                             \
    X(qn_batch, 0xa43905e5)                                                                        \
    X(qn_batch_matmul_params, 0xe359867c)                                                          \
    X(qn_batch_norm_params, 0x81479722)                                                            \
    X(qn_batch_schedule, 0x71411f3b)                                                               \
    X(qn_batch_step, 0x97045aa1)                                                                   \
    X(qn_bench_params, 0x0aba71ce)                                                                 \
    X(qn_bench_record, 0x0ab7dc11)                                                                 \
    X(qn_ceilings, 0x1bda7d3c)                                                                     \
    X(qn_cell, 0x5617be27)                                                                         \
    X(qn_chain_step, 0x1be3c911)                                                                   \
    X(qn_check_params, 0xe5d84bdb)                                                                 \
    X(qn_check_record, 0x701ace08)                                                                 \
    X(qn_check_summary, 0x438f7881)                                                                \
    X(qn_checkpoint_info, 0x70fce41d)                                                              \
    X(qn_column, 0x2bcdf10d)                                                                       \
    X(qn_contrastive_params, 0x504c30b2)                                                           \
    X(qn_conv2d_params, 0xcf583230)                                                                \
    X(qn_conv_transpose2d_params, 0xecc814f0)                                                      \
    X(qn_cross_entropy_params, 0xf4c29819)                                                         \
    X(qn_csv_params, 0xe609b938)                                                                   \
    X(qn_cycle, 0x0645f9b8)                                                                        \
    X(qn_dataset_facts, 0x467612c3)                                                                \
    X(qn_dataset_params, 0xfdbe1f35)                                                               \
    X(qn_device_info, 0xf4540c86)                                                                  \
    X(qn_device_params, 0x073bdfde)                                                                \
    X(qn_draw, 0x83430a11)                                                                         \
    X(qn_drift, 0xebcd3fce)                                                                        \
    X(qn_drift_age, 0x27425c83)                                                                    \
    X(qn_drift_params, 0x3f439aac)                                                                 \
    X(qn_encode_params, 0x92c63759)                                                                \
    X(qn_facts, 0x4d819b90)                                                                        \
    X(qn_function_params, 0x0c3a0941)                                                              \
    X(qn_generator_params, 0x09faaffa)                                                             \
    X(qn_gradient_norms, 0xb707a642)                                                               \
    X(qn_graph_params, 0x4ea2c7be)                                                                 \
    X(qn_graph_write_params, 0x3159432e)                                                           \
    X(qn_group_figures, 0x43b02ca0)                                                                \
    X(qn_group_member, 0x8b903bf6)                                                                 \
    X(qn_group_norm_params, 0xf196f550)                                                            \
    X(qn_group_params, 0xe0c054b5)                                                                 \
    X(qn_group_part, 0x88d9dda9)                                                                   \
    X(qn_half_params, 0xe1791b7c)                                                                  \
    X(qn_image_params, 0x7c9c332d)                                                                 \
    X(qn_improvement, 0x5beaeeee)                                                                  \
    X(qn_info_nce_params, 0xc2adbdda)                                                              \
    X(qn_init, 0x2837d0b4)                                                                         \
    X(qn_json_line_params, 0x54885d72)                                                             \
    X(qn_layer_norm_params, 0xb7b447f6)                                                            \
    X(qn_layout, 0x8337dd37)                                                                       \
    X(qn_layout_rule, 0x4fc6b677)                                                                  \
    X(qn_lifetime, 0xf2d12f49)                                                                     \
    X(qn_linear_activation_params, 0x911af7a0)                                                     \
    X(qn_loader_params, 0xe500dc4f)                                                                \
    X(qn_log, 0x37b6e2ab)                                                                          \
    X(qn_loss_params, 0xe3b8afca)                                                                  \
    X(qn_lr_found, 0xbe3a6272)                                                                     \
    X(qn_lr_range, 0x05557caf)                                                                     \
    X(qn_lr_schedule, 0x747eb1e7)                                                                  \
    X(qn_metric_params, 0x02cf77ba)                                                                \
    X(qn_metrics, 0xbf3b5863)                                                                      \
    X(qn_mix_params, 0x2ca45b4f)                                                                   \
    X(qn_model_data, 0xceeeb3b9)                                                                   \
    X(qn_model_option, 0xd23bebdf)                                                                 \
    X(qn_nearest, 0xba91985d)                                                                      \
    X(qn_node_info, 0x4b83a7fb)                                                                    \
    X(qn_npy_params, 0xd692e808)                                                                   \
    X(qn_optimizer, 0x40d35f2f)                                                                    \
    X(qn_pair_params, 0xbd145226)                                                                  \
    X(qn_part_params, 0x2f0dca76)                                                                  \
    X(qn_place_params, 0xe55086fe)                                                                 \
    X(qn_plan_info, 0x06ab19ae)                                                                    \
    X(qn_plan_params, 0x521a5a43)                                                                  \
    X(qn_plan_point, 0xd9b183ab)                                                                   \
    X(qn_png_params, 0x0074ee16)                                                                   \
    X(qn_pool2d_params, 0x23a98c4b)                                                                \
    X(qn_predictor_params, 0xee3de134)                                                             \
    X(qn_profile_step, 0x6203e526)                                                                 \
    X(qn_reduce, 0xef005742)                                                                       \
    X(qn_reduce_slice, 0xe1d10e81)                                                                 \
    X(qn_retrieval, 0x44bdfd63)                                                                    \
    X(qn_retrieval_params, 0xfd895f79)                                                             \
    X(qn_rms_norm_params, 0x274c0159)                                                              \
    X(qn_rotary_params, 0xdc464e3c)                                                                \
    X(qn_run, 0x48aca5b4)                                                                          \
    X(qn_run_list, 0x074e1c8a)                                                                     \
    X(qn_sampling, 0x5c25b4ef)                                                                     \
    X(qn_save_params, 0x12b0ec5d)                                                                  \
    X(qn_scope, 0xefd95a0f)                                                                        \
    X(qn_shape, 0x37dab209)                                                                        \
    X(qn_struct_info, 0x72f3495c)                                                                  \
    X(qn_tensor, 0x701beb85)                                                                       \
    X(qn_tensors_entry, 0x4439afb3)                                                                \
    X(qn_tensors_item, 0x19ba2d3a)                                                                 \
    X(qn_tensors_pair, 0x729617ee)                                                                 \
    X(qn_tensors_params, 0x35af7ab5)                                                               \
    X(qn_token_params, 0x6b9f30b9)                                                                 \
    X(qn_tokenizer_train_params, 0xb9eadf97)                                                       \
    X(qn_tower, 0xf8431798)                                                                        \
    X(qn_towers, 0x4d217109)                                                                       \
    X(qn_trainer_params, 0x51ddebe7)                                                               \
    X(qn_transport, 0xd8577427)                                                                    \
    X(qn_tune_params, 0x179dffe3)                                                                  \
    X(qn_tune_progress, 0xb867afe4)                                                                \
    X(qn_tune_result, 0xf04bf4ce)                                                                  \
    X(qn_upsample2d_params, 0x231de6ad)                                                            \
    X(qn_weights_params, 0x38795e52)                                                               \
    X(qn_weights_record, 0x970a2de6)

/* The size that the library has for a struct; 0: it has none of that name. Thread-safety: Safe. */
QN_API int64_t qn_struct_size(const char *name);

/* Compares `count` structs of a caller that was written for `version` ("0.1.0"; NULL: any) with the
 * library's. QN_ERR_ARGUMENT: the library's ABI is another one, or does not know a struct, or has
 * it in another size or layout; qn_last_error names it. Thread-safety: Safe. */
QN_API qn_status qn_abi_compare(const char *version, const qn_struct_info *structs, int count);

/* The same for these headers, as they were compiled into the caller: `if (qn_abi_check()) ...`. */
static inline qn_status qn_abi_check(void)
{
#define QN_STRUCT_INFO(name, layout) {#name, sizeof(name), layout},
    static const qn_struct_info structs[] = {QN_STRUCT_LIST(QN_STRUCT_INFO)};
#undef QN_STRUCT_INFO
    return qn_abi_compare(QN_VERSION, structs, sizeof structs / sizeof *structs);
}

#ifdef __cplusplus
}
#endif
#endif
