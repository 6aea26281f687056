/* SPDX-License-Identifier: Apache-2.0 */
/* What C functions that TVM printed name of TVM: the layout of arguments and tensors, errors, scratch memory. */
#ifndef PROJECT_TVM_C_H_
#define PROJECT_TVM_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TVM_DLL

typedef struct {
  int32_t device_type;
  int32_t device_id;
} DLDevice;

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;

/* An argument: `type_index` 7 is a pointer to a DLTensor. */
typedef struct {
  int32_t type_index;
  uint32_t zero_padding;
  union {
    int64_t v_int64;
    double v_float64;
    void* v_ptr;
  };
} TVMFFIAny;

/* Keep the message of an error; the function that has it then returns -1. */
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count);

void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes, int type_code, int type_bits);
int TVMBackendFreeWorkspace(int device_type, int device_id, void* data);

#ifdef __cplusplus
}
#endif

#endif /* PROJECT_TVM_C_H_ */
