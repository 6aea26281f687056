// SPDX-License-Identifier: Apache-2.0
// `by hand`, compiled for 910b2 by uir_tvm 0.1.0: 2 launches of 2 kernels,
// 1 calls of the library.
#include "model.h"

#include "aclrtlaunch_scale_0.h"
#include "aclrtlaunch_scale_1.h"
#include "library.h"


namespace project {

const size_t kWeightBytes = 2048;
const size_t kInputs = 1;

namespace {

/*! Where every buffer lies. Buffers that are not needed at the same time share bytes of the arena. */
namespace at {
constexpr Place x{Region::kArena, 0, 128};  // float32 (8, 16)
constexpr Place weight{Region::kWeights, 0, 256};  // float32 (16, 16)
constexpr Place bias{Region::kWeights, 1536, 16};  // float32 (16)
constexpr Place y{Region::kArena, 1024, 128};  // float32 (8, 16)
constexpr Place out{Region::kArena, 2048, 128};  // float32 (8, 16)
constexpr Place workspace_1_half{Region::kArena, 3072, 512};  // uint8 (512)
}  // namespace at

}  // namespace

const std::vector<std::string>& SizeNames() {
  static const std::vector<std::string> names = {};
  return names;
}

Plan PlanFor(const Sizes& sizes) { return {sizes, 4096, {}}; }

std::vector<Tensor> Inputs(const Plan& /*plan*/) {
  return {
      {"x", "x.bin", Element::kFloat32, {8, 16}, 512, Region::kArena, 0},
  };
}

std::vector<Tensor> Outputs(const Plan& /*plan*/) {
  return {
      {"output0", "output0.bin", Element::kFloat32, {8, 16}, 512, Region::kArena, 2048},
      {"output1", "output1.bin", Element::kFloat32, {8, 16}, 512, Region::kArena, 0},
  };
}

const std::vector<Tensor>& Weights() {
  static const std::vector<Tensor> tensors = {
      {"weight", "weights/000_weight.bin", Element::kFloat32, {16, 16}, 1024, Region::kWeights, 0},
      {"bias", "weights/001_bias.bin", Element::kFloat32, {16}, 64, Region::kWeights, 1536},
  };
  return tensors;
}

namespace {

void Part0(Device& device, const Storage& storage) {
  // matmul + add
  Addmm(device,
      View(storage.At(at::bias), at::bias.elements, ACL_FLOAT, {16}, {1}),
      View(storage.At(at::x), at::x.elements, ACL_FLOAT, {8, 16}, {16, 1}),
      View(storage.At(at::weight), at::weight.elements, ACL_FLOAT, {16, 16}, {16, 1}),
      View(storage.At(at::y), at::y.elements, ACL_FLOAT, {8, 16}, {16, 1}));
  // add: scale
  CHECK_ACL(ACLRT_LAUNCH_KERNEL(scale_0)(2, device.stream(), storage.At(at::y), storage.At(at::workspace_1_half)));
  CHECK_ACL(ACLRT_LAUNCH_KERNEL(scale_1)(
      2,
      device.stream(),
      storage.At(at::x),
      storage.At(at::workspace_1_half),
      storage.At(at::out)));
}


}  // namespace

void Run(Device& device, const Storage& storage) {
  Part0(device, storage);
}

}  // namespace project
