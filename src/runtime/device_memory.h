// SPDX-License-Identifier: Apache-2.0
// Whose memory TVM's device `ext_dev` is: that of the host models, or of a vendor's device.
//
// Which of them is settled once in a process, when the first tensor is allocated or a compiled model asks for its
// own (`Choose`): an address says nothing of where it lies.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <string>

namespace uir::runtime {

/*! \brief The memory of one place. */
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /*! \brief "model" or "npu", as `uir_tvm.target.place` names it. */
  virtual const char* place() const = 0;
  /*! \brief What a person calls the device. */
  virtual std::string name() const = 0;
  virtual int num_devices() const = 0;
  virtual void Use(int device) = 0;
  /*! \brief \throws DeviceError There is no memory left. */
  virtual void* Allocate(int device, size_t bytes, size_t alignment) = 0;
  virtual void Free(int device, void* data) = 0;
  /*! \brief Memory for one call of a kernel, given back before the kernel need have run. */
  virtual void* TakeWorkspace(int device, size_t bytes) = 0;
  virtual void GiveWorkspace(int device, void* data) = 0;
  //! \brief Copies, in the order of a stream; either side may be the host.
  //!
  //! What the host reads is there when it returns; where it writes, its memory may change then, and what is put on the
  //! stream afterwards finds it written.
  virtual void Copy(const void* from, DLDevice from_device, void* to, DLDevice to_device, size_t bytes,
                    void* stream) = 0;
  virtual void Synchronize(int device, void* stream) = 0;
  virtual void* CreateStream(int device) = 0;
  virtual void FreeStream(int device, void* stream) = 0;
};

/*! \brief A place on `ext_dev`. */
struct MemoryRow {
  /*! \brief "npu"; "model" is what is taken where there is no device. */
  std::string place;
  /*! \brief Its memory, or nullptr where this machine has none. */
  DeviceMemory* (*find)();
};

/*! \brief Adds a row; as the library is loaded, from the file of the memory. */
void RegisterMemory(const MemoryRow& row);

/*! \brief The memory of `ext_dev`, settled by this call if it was not: the device that there is, else the model. */
DeviceMemory& ExtDevMemory();

/*! \brief Where tensors of a device lie: "gpu", "model", "npu", "mlu", or "cpu" and other names of no place of ours. */
std::string PlaceOf(DLDevice device);

}  // namespace uir::runtime
