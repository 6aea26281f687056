// SPDX-License-Identifier: Apache-2.0
// What the program needs of the Ascend runtime (ACL) and of its operator library (aclnn). Every handle is released by
// the object that holds it, and the result of every call is checked.
#ifndef PROJECT_DEVICE_H_
#define PROJECT_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

namespace project {

/*! What went wrong, and the runtime's own words about it. */
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/*! Throws unless a call succeeded. `status` is an aclError, an aclnnStatus or the result of a launch: 0 is success. */
void Check(int64_t status, const char* call);
#define CHECK_ACL(call) ::project::Check((call), #call)

/*! The runtime, one device and one stream, on which all work is queued in order. */
class Device {
 public:
  explicit Device(int id);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  aclrtStream stream() const { return stream_; }
  /*! Waits for all queued work. */
  void Synchronize() const;
  /*!
   * At least `bytes` of device memory for one operator of the library; null for 0. Operators of one stream run one
   * after the other, so that all share one workspace. It only grows.
   */
  void* Workspace(uint64_t bytes);

 private:
  int id_;
  aclrtStream stream_ = nullptr;
  void* workspace_ = nullptr;
  uint64_t workspace_bytes_ = 0;
};

/*! Waits for all queued work when it goes out of scope: before what the work uses does, also where something failed. */
class Drained {
 public:
  explicit Drained(const Device& device) : stream_(device.stream()) {}
  ~Drained();
  Drained(const Drained&) = delete;
  Drained& operator=(const Drained&) = delete;

 private:
  aclrtStream stream_;
};

/*! Device memory. */
class Memory {
 public:
  explicit Memory(size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /*! The address `offset` bytes from the start. */
  void* At(size_t offset) const { return static_cast<char*>(data_) + offset; }

 private:
  void* data_ = nullptr;
};

void CopyToDevice(void* to, const std::vector<char>& from);
/*! Does not wait for queued work: synchronize first. */
std::vector<char> CopyToHost(const void* from, size_t bytes);

/*! The time between two points of the stream, as the device measures it. */
class Timer {
 public:
  Timer();
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void Start(const Device& device);
  void Stop(const Device& device);
  /*! Of work that is done: synchronize first. */
  float Milliseconds() const;

 private:
  aclrtEvent start_ = nullptr;
  aclrtEvent stop_ = nullptr;
};

/*!
 * A view of a tensor in device memory, as aclnn takes operands: a transpose, a slice or a repeated dimension is strides
 * and an offset, in elements, into the `elements` that lie at `data`.
 */
class View {
 public:
  View(void* data, int64_t elements, aclDataType type, const std::vector<int64_t>& shape,
       const std::vector<int64_t>& strides, int64_t offset = 0, aclFormat format = ACL_FORMAT_ND);
  ~View();
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  aclTensor* get() const { return tensor_; }

 private:
  aclTensor* tensor_;
};

/*! A number for aclnn. */
class Scalar {
 public:
  explicit Scalar(float value);
  ~Scalar();
  Scalar(const Scalar&) = delete;
  Scalar& operator=(const Scalar&) = delete;

  aclScalar* get() const { return scalar_; }

 private:
  float value_;
  aclScalar* scalar_;
};

/*! Whole numbers for aclnn. */
class Numbers {
 public:
  explicit Numbers(const std::vector<int64_t>& values);
  ~Numbers();
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  aclIntArray* get() const { return array_; }

 private:
  aclIntArray* array_;
};

}  // namespace project

#endif  // PROJECT_DEVICE_H_
