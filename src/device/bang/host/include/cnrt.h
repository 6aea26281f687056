// SPDX-License-Identifier: Apache-2.0
// Stands for the header of this name of Cambricon's runtime: the part of it that exported projects use.
//
// Names, parameters and values are the vendor's (uir_tvm/target/bang/project_names.json has the sources). What they do
// is in libuir_cnrt.so, on the host model.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UIR_CNRT_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  cnrtSuccess = 0,
  cnrtErrorDeviceInvalid = 100005,
  cnrtErrorArgsInvalid = 100006,
  cnrtErrorInvalidResourceHandle = 100014,
  cnrtErrorNoMem = 100100,
  cnrtErrorMemcpyDirectionInvalid = 632013,
  cnrtErrorUnknown = 999991,
} cnrtRet_t;

typedef enum { cnrtMemcpyHostToDev = 0, cnrtMemcpyDevToDev, cnrtMemcpyDevToHost } cnrtMemTransDir_t;

typedef struct CNqueue_st* cnrtQueue_t;
typedef struct CNnotifier_st* cnrtNotifier_t;

UIR_CNRT_API cnrtRet_t cnrtGetDeviceCount(unsigned int* pCount);
UIR_CNRT_API cnrtRet_t cnrtSetDevice(int ordinal);
UIR_CNRT_API const char* cnrtGetErrorStr(cnrtRet_t errCode);
UIR_CNRT_API cnrtRet_t cnrtMalloc(void** pPtr, size_t bytes);
UIR_CNRT_API cnrtRet_t cnrtFree(void* ptr);
UIR_CNRT_API cnrtRet_t cnrtMemcpy(void* dst, void* src, size_t bytes, cnrtMemTransDir_t dir);
UIR_CNRT_API cnrtRet_t cnrtQueueCreate(cnrtQueue_t* pQueue);
UIR_CNRT_API cnrtRet_t cnrtQueueDestroy(cnrtQueue_t queue);
UIR_CNRT_API cnrtRet_t cnrtQueueSync(cnrtQueue_t queue);
UIR_CNRT_API cnrtRet_t cnrtNotifierCreate(cnrtNotifier_t* pNotifier);
UIR_CNRT_API cnrtRet_t cnrtNotifierDestroy(cnrtNotifier_t notifier);
UIR_CNRT_API cnrtRet_t cnrtPlaceNotifier(cnrtNotifier_t notifier, cnrtQueue_t queue);
UIR_CNRT_API cnrtRet_t cnrtNotifierDuration(cnrtNotifier_t start, cnrtNotifier_t end, float* us);

#ifdef __cplusplus
}
#endif
