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

/*! Where a buffer lies, and how many elements it has. */
struct Place {
  Region region;
  size_t offset;
  int64_t elements;
};

/*! A number for each size that the model leaves open, in the order of `SizeNames`. */
using Sizes = std::vector<int64_t>;

/*! Memory at some sizes. */
struct Plan {
  Sizes sizes;
  size_t arena_bytes;
  /*! Of every buffer, where sizes decide it. */
  std::vector<Place> places;
};

/*! Names of the sizes that the model leaves open; none where every shape is fixed. */
const std::vector<std::string>& SizeNames();
/*! Throws a Failure for sizes that the model is not compiled for. */
Plan PlanFor(const Sizes& sizes);

extern const size_t kInputs;
std::vector<Tensor> Inputs(const Plan& plan);
std::vector<Tensor> Outputs(const Plan& plan);
const std::vector<Tensor>& Weights();
extern const size_t kWeightBytes;

/*! The model's device memory. */
struct Storage {
  explicit Storage(const Plan& the_plan) : plan(the_plan) {}

  const Plan plan;
  Memory arena{plan.arena_bytes};
  Memory weights{kWeightBytes};

  void* At(Region region, size_t offset) const { return (region == Region::kArena ? arena : weights).At(offset); }
  void* At(const Place& place) const { return At(place.region, place.offset); }
  void* At(const Tensor& tensor) const { return At(tensor.region, tensor.offset); }
  /*! A buffer of the plan, by its number. */
  void* At(size_t buffer) const { return At(plan.places[buffer]); }
  int64_t Elements(size_t buffer) const { return plan.places[buffer].elements; }
};

/*! Queues one run of the model on the device's stream; inputs and weights are in their places. */
void Run(Device& device, const Storage& storage);

}  // namespace project

#endif  // PROJECT_MODEL_H_
