// SPDX-License-Identifier: Apache-2.0
// Stands for the header of this name of Cambricon's operator library: the part that exported projects use.
//
// Names and parameters are the vendor's as public programs use them (uir_tvm/target/bang/project_names.json has the
// sources); values of enumerations are our own, as nothing but this header and libuir_cnrt.so sees them.
#pragma once

#include "cnrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { CNNL_STATUS_SUCCESS = 0, CNNL_STATUS_BAD_PARAM, CNNL_STATUS_NOT_SUPPORTED } cnnlStatus_t;
typedef enum { CNNL_DTYPE_HALF = 1, CNNL_DTYPE_FLOAT, CNNL_DTYPE_INT8 } cnnlDataType_t;
typedef enum { CNNL_LAYOUT_NHWC = 1, CNNL_LAYOUT_ARRAY } cnnlTensorLayout_t;
typedef enum { CNNL_MATMUL_USE_STRIDE = 1, CNNL_MATMUL_ALLOW_TF32 } cnnlMatMulDescAttribute_t;
typedef enum { CNNL_CONVOLUTION_FWD_FASTEST = 1 } cnnlConvolutionFwdPreference_t;
typedef enum { CNNL_CONVOLUTION_FWD_ALGO_DIRECT = 1 } cnnlConvolutionForwardAlgo_t;

typedef struct cnnlContext* cnnlHandle_t;
typedef struct cnnlTensorStruct* cnnlTensorDescriptor_t;
typedef struct cnnlMatMulStruct* cnnlMatMulDescriptor_t;
typedef struct cnnlMatMulAlgoStruct* cnnlMatMulAlgo_t;
typedef struct cnnlMatMulHeuristicResult* cnnlMatMulHeuristicResult_t;
typedef struct cnnlMatMulPrefer* cnnlMatMulPrefer_t;
typedef struct cnnlTransposeStruct* cnnlTransposeDescriptor_t;
typedef struct cnnlConvolutionStruct* cnnlConvolutionDescriptor_t;

UIR_CNRT_API cnnlStatus_t cnnlCreate(cnnlHandle_t* handle);
UIR_CNRT_API cnnlStatus_t cnnlDestroy(cnnlHandle_t handle);
UIR_CNRT_API cnnlStatus_t cnnlSetQueue(cnnlHandle_t handle, cnrtQueue_t queue);
UIR_CNRT_API const char* cnnlGetErrorString(cnnlStatus_t status);
UIR_CNRT_API cnnlStatus_t cnnlCreateTensorDescriptor(cnnlTensorDescriptor_t* desc);
UIR_CNRT_API cnnlStatus_t cnnlDestroyTensorDescriptor(cnnlTensorDescriptor_t desc);
UIR_CNRT_API cnnlStatus_t cnnlSetTensorDescriptor(cnnlTensorDescriptor_t desc, cnnlTensorLayout_t layout,
                                                  cnnlDataType_t dtype, int dimNb, const int dimSize[]);
UIR_CNRT_API cnnlStatus_t cnnlSetTensorDescriptorEx(cnnlTensorDescriptor_t desc, cnnlTensorLayout_t layout,
                                                    cnnlDataType_t dtype, int dimNb, const int dimSize[],
                                                    const int dimStride[]);
UIR_CNRT_API cnnlStatus_t cnnlSetTensorDescriptorPosition(cnnlTensorDescriptor_t desc, int position);
UIR_CNRT_API cnnlStatus_t cnnlMatMulDescCreate(cnnlMatMulDescriptor_t* desc);
UIR_CNRT_API cnnlStatus_t cnnlMatMulDescDestroy(cnnlMatMulDescriptor_t desc);
UIR_CNRT_API cnnlStatus_t cnnlMatMulAlgoCreate(cnnlMatMulAlgo_t* algo);
UIR_CNRT_API cnnlStatus_t cnnlMatMulAlgoDestroy(cnnlMatMulAlgo_t algo);
UIR_CNRT_API cnnlStatus_t cnnlCreateMatMulHeuristicResult(cnnlMatMulHeuristicResult_t* result);
UIR_CNRT_API cnnlStatus_t cnnlDestroyMatMulHeuristicResult(cnnlMatMulHeuristicResult_t result);
UIR_CNRT_API cnnlStatus_t cnnlSetMatMulDescAttr(cnnlMatMulDescriptor_t desc, cnnlMatMulDescAttribute_t attr,
                                                const void* buf, size_t size);
UIR_CNRT_API cnnlStatus_t cnnlGetBatchMatMulAlgoHeuristic(cnnlHandle_t handle, cnnlMatMulDescriptor_t desc,
                                                          cnnlTensorDescriptor_t a, cnnlTensorDescriptor_t b,
                                                          cnnlTensorDescriptor_t c, cnnlMatMulPrefer_t preference,
                                                          int requested, cnnlMatMulHeuristicResult_t results[],
                                                          int* count);
UIR_CNRT_API cnnlStatus_t cnnlGetBatchMatMulHeuristicResult(cnnlMatMulHeuristicResult_t result, cnnlMatMulAlgo_t algo,
                                                            size_t* workspaceSize);
UIR_CNRT_API cnnlStatus_t cnnlBatchMatMulBCast_v2(cnnlHandle_t handle, cnnlMatMulDescriptor_t desc,
                                                  cnnlMatMulAlgo_t algo, const void* alpha,
                                                  const cnnlTensorDescriptor_t aDesc, const void* a,
                                                  const cnnlTensorDescriptor_t bDesc, const void* b, const void* beta,
                                                  const cnnlTensorDescriptor_t cDesc, void* c, void* workspace,
                                                  size_t workspaceSize);
UIR_CNRT_API cnnlStatus_t cnnlGetBatchMatMulBCastWorkspaceSize(cnnlHandle_t handle, const cnnlTensorDescriptor_t aDesc,
                                                               const cnnlTensorDescriptor_t bDesc,
                                                               const cnnlTensorDescriptor_t cDesc, size_t* size);
UIR_CNRT_API cnnlStatus_t cnnlBatchMatMulBCast(cnnlHandle_t handle, bool isTransA, bool isTransB,
                                               const cnnlTensorDescriptor_t aDesc, const void* a,
                                               const cnnlTensorDescriptor_t bDesc, const void* b, void* workspace,
                                               size_t workspaceSize, const cnnlTensorDescriptor_t cDesc, void* c);
UIR_CNRT_API cnnlStatus_t cnnlCreateTransposeDescriptor(cnnlTransposeDescriptor_t* desc);
UIR_CNRT_API cnnlStatus_t cnnlDestroyTransposeDescriptor(cnnlTransposeDescriptor_t desc);
UIR_CNRT_API cnnlStatus_t cnnlSetTransposeDescriptor(cnnlTransposeDescriptor_t desc, const int dims,
                                                     const int permute[]);
UIR_CNRT_API cnnlStatus_t cnnlGetTransposeWorkspaceSize(cnnlHandle_t handle, const cnnlTensorDescriptor_t x,
                                                        const cnnlTransposeDescriptor_t desc, size_t* size);
UIR_CNRT_API cnnlStatus_t cnnlTranspose_v2(cnnlHandle_t handle, const cnnlTransposeDescriptor_t desc,
                                           const cnnlTensorDescriptor_t xDesc, const void* x,
                                           const cnnlTensorDescriptor_t yDesc, void* y, void* workspace,
                                           size_t workspaceSize);
UIR_CNRT_API cnnlStatus_t cnnlCreateConvolutionDescriptor(cnnlConvolutionDescriptor_t* desc);
UIR_CNRT_API cnnlStatus_t cnnlDestroyConvolutionDescriptor(cnnlConvolutionDescriptor_t desc);
UIR_CNRT_API cnnlStatus_t cnnlSetConvolutionDescriptor(cnnlConvolutionDescriptor_t desc, const int dimNb,
                                                       const int pad[], const int stride[], const int dilation[],
                                                       const int groups, cnnlDataType_t computeType);
UIR_CNRT_API cnnlStatus_t cnnlGetConvolutionForwardAlgorithm(
    cnnlHandle_t handle, const cnnlConvolutionDescriptor_t desc, const cnnlTensorDescriptor_t x,
    const cnnlTensorDescriptor_t w, const cnnlTensorDescriptor_t y, cnnlConvolutionFwdPreference_t preference,
    cnnlConvolutionForwardAlgo_t* algo);
UIR_CNRT_API cnnlStatus_t cnnlGetConvolutionForwardWorkspaceSize(cnnlHandle_t handle, const cnnlTensorDescriptor_t x,
                                                                 const cnnlTensorDescriptor_t w,
                                                                 const cnnlTensorDescriptor_t y,
                                                                 const cnnlTensorDescriptor_t bias,
                                                                 const cnnlConvolutionDescriptor_t desc,
                                                                 cnnlConvolutionForwardAlgo_t algo, size_t* size);
UIR_CNRT_API cnnlStatus_t cnnlConvolutionForward(cnnlHandle_t handle, const cnnlConvolutionDescriptor_t desc,
                                                 cnnlConvolutionForwardAlgo_t algo, const void* alpha,
                                                 const cnnlTensorDescriptor_t xDesc, const void* x,
                                                 const cnnlTensorDescriptor_t wDesc, const void* w,
                                                 const cnnlTensorDescriptor_t biasDesc, const void* bias,
                                                 void* workspace, size_t workspaceSize, const void* beta,
                                                 const cnnlTensorDescriptor_t yDesc, void* y);

#ifdef __cplusplus
}
#endif
