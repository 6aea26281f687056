// SPDX-License-Identifier: Apache-2.0
// The model: its tensors, where they lie, and the work of one run.
#ifndef PROJECT_MODEL_H_
#define PROJECT_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device.h"

namespace project {

/*! Type of the elements in a file. */
enum class Element { kFloat32, kFloat16, kBfloat16, kInt8, kUint8, kBool, kInt32, kInt64 };

/*! Which allocation: what is computed, or what is loaded once. */
enum class Region { kArena, kWeights };

/*! A tensor that is read from or written to a file, row-major and little-endian. */
struct Tensor {
  std::string name;
  /*! Weights: relative to the folder of the project; inputs and outputs: its name in a folder of such files. */
  std::string file;
  Element element;
  std::vector<int64_t> shape;
  size_t bytes;
  Region region;
  size_t offset;
};

/*! Bytes of the two allocations. */
extern const size_t kArenaBytes;
extern const size_t kWeightBytes;

const std::vector<Tensor>& Inputs();
const std::vector<Tensor>& Outputs();
const std::vector<Tensor>& Weights();

/*! Where a buffer lies, and how many elements it has. */
struct Place {
  Region region;
  size_t offset;
  int64_t elements;
};

/*! The model's device memory. */
struct Storage {
  Memory arena{kArenaBytes};
  Memory weights{kWeightBytes};

  void* At(Region region, size_t offset) const { return (region == Region::kArena ? arena : weights).At(offset); }
  void* At(const Place& place) const { return At(place.region, place.offset); }
  void* At(const Tensor& tensor) const { return At(tensor.region, tensor.offset); }
};

/*! Queues one run of the model on the device's stream; inputs and weights are in their places. */
void Run(Device& device, const Storage& storage);

}  // namespace project

#endif  // PROJECT_MODEL_H_
