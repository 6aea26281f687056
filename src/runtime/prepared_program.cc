// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepared_program.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/error.h>

#include <exception>
#include <mutex>
#include <utility>

#include "runtime/host_tensors.h"
#include "runtime/pool.h"
#include "runtime/result_memory.h"

namespace uir::runtime {
namespace {

/*! A tensor whose memory is set from call to call. */
struct Borrowed {
  void AllocData(DLTensor* tensor) { tensor->data = nullptr; }
  void FreeData(DLTensor*) {}
};

ffi::Tensor View(const ffi::Shape& shape, DLDataType dtype) {
  return ffi::Tensor::FromNDAlloc(Borrowed(), shape, dtype, DLDevice{kDLCPU, 0});
}

DLTensor* Mutable(const ffi::Tensor& tensor) { return const_cast<DLTensor*>(tensor.GetDLTensorPtr()); }

MemoryRange RangeOf(const ffi::Tensor& tensor) {
  const DLTensor* data = tensor.GetDLTensorPtr();
  return {static_cast<char*>(data->data) + data->byte_offset, ffi::GetDataSize(*data)};
}

void* Address(const DLTensor* tensor) { return static_cast<char*>(tensor->data) + tensor->byte_offset; }

/*! The function `NAME.prepared` is given all operands, tensors without their data where that changes, and returns what
 *  takes the tensors alone. */
std::optional<ffi::Function> PreparedFunction(const ProgramCall& call, const std::vector<ffi::AnyView>& operands) {
  const std::optional<ffi::Function> prepare = ffi::Function::GetGlobal(call.name + ".prepared");
  if (!prepare) return std::nullopt;
  ffi::Any made;
  prepare->CallPacked(operands.data(), static_cast<int32_t>(operands.size()), &made);
  return made.try_cast<ffi::Function>();
}

}  // namespace

char* GrowingMemory::AtLeast(int64_t bytes) {
  if (bytes > bytes_ || !data_) {
    data_.reset();
    bytes_ = (bytes + kDataAlignment) / kDataAlignment * kDataAlignment;
    data_.reset(static_cast<char*>(AlignedBlock(kDataAlignment, bytes_)));
  }
  return data_.get();
}

PreparedProgram::PreparedProgram(StraightProgram program, std::vector<TensorType> arguments, int inputs,
                                 Positions positions, std::shared_ptr<CallsInTurn> shared)
    : arguments_(std::move(arguments)),
      inputs_(inputs),
      positions_(std::move(positions)),
      shared_(std::move(shared)),
      results_(program.results),
      returns_tuple_(program.returns_tuple),
      scratch_bytes_(program.scratch_bytes) {
  for (const TensorType& each : arguments_) {
    as_given_.push_back(View(each.shape, each.dtype));
    seen_.push_back(as_given_.back().GetDLTensorPtr());
  }
  copies_.resize(inputs_);
  made_.resize(results_.size());
  addresses_.resize(results_.size());
  Prepare(std::move(program));
}

void PreparedProgram::Prepare(StraightProgram program) {
  held_ = std::move(program.held);
  std::vector<MemoryRange> constants;
  for (const ffi::Any& each : held_) {
    if (const auto tensor = each.try_cast<ffi::Tensor>()) constants.push_back(RangeOf(*tensor));
  }
  shared_->read_often.Add(constants);
  for (const ProgramTensor& each : program.tensors) {
    tensors_.push_back(View(each.shape, each.dtype));
    DLTensor* view = Mutable(tensors_.back());
    switch (each.memory) {
      case Memory::kArgument:
        if (each.index < inputs_) {
          of_inputs_.push_back({view, each.index, each.offset});
        } else {
          of_state_.push_back({view, each.index - inputs_, each.offset});
        }
        break;
      case Memory::kResult:
        of_results_.push_back({view, each.index, each.offset});
        break;
      case Memory::kScratch:
        of_scratch_.push_back({view, 0, each.offset});
        break;
      case Memory::kConstant:
        view->data = each.data + each.offset;
        break;
    }
  }
  size_t count = 0;
  for (const ProgramCall& call : program.calls) count += call.operands.size();
  operands_.reserve(count), values_.reserve(count);  // addresses stay
  for (const ProgramCall& call : program.calls) {
    const size_t first = operands_.size();
    std::vector<ffi::AnyView> of_tensors;
    for (const ProgramOperand& operand : call.operands) {
      if (operand.tensor >= 0) {
        operands_.push_back(tensors_[operand.tensor]);
        of_tensors.push_back(operands_.back());
      } else {
        values_.push_back(operand.value);
        operands_.push_back(values_.back());
      }
    }
    ffi::Function function = call.function;
    if (of_tensors.size() < call.operands.size()) {
      const std::vector<ffi::AnyView> given(operands_.begin() + first, operands_.end());
      if (const std::optional<ffi::Function> prepared = PreparedFunction(call, given)) {
        function = *prepared;
        operands_.resize(first);
        operands_.insert(operands_.end(), of_tensors.begin(), of_tensors.end());
      }
    }
    calls_.push_back({function, operands_.data() + first, static_cast<int32_t>(operands_.size() - first)});
  }
}

void PreparedProgram::BeginAnew() {
  state_.clear();
  scratch_ = nullptr;
  forks_ = Forks();
}

void PreparedProgram::BindScratch() {
  char* scratch = shared_->scratch.AtLeast(scratch_bytes_);
  if (scratch == scratch_) return;
  for (const Patch& each : of_scratch_) each.tensor->data = scratch + each.offset;
  scratch_ = scratch;
}

void PreparedProgram::Bind(const BoundState& state) {
  bool same = state_.size() == state.tensors.size();
  for (size_t i = 0; same && i < state_.size(); ++i) same = state_[i] == state.tensors[i].data_ptr();
  if (same) return;
  state_.clear();
  std::vector<MemoryRange> pieces;
  for (const ffi::Tensor& each : state.tensors) pieces.push_back(RangeOf(each));
  shared_->read_often.Add(pieces);
  for (const ffi::Tensor& each : state.tensors) {
    Mutable(as_given_[inputs_ + state_.size()])->data = each.data_ptr();
    state_.push_back(each.data_ptr());
  }
  for (const Patch& each : of_state_) each.tensor->data = static_cast<char*>(state_[each.index]) + each.offset;
}

const DLTensor* PreparedProgram::InOwnMemory(int input, const DLTensor* given) {
  DLTensor* mine = Mutable(as_given_[input]);
  if (IsReady(*given)) {
    mine->data = Address(given);
  } else {
    mine->data = copies_[input].AtLeast(arguments_[input].bytes());
    CopyElements(*given, *mine);
  }
  return mine;
}

ffi::Any PreparedProgram::Run(const DLTensor* const* inputs, const DLTensor* const* outputs, const BoundState& state) {
  for (int i = 0; i < inputs_; ++i) {
    if (!Fits(*inputs[i], arguments_[i]) || !IsPlain(*inputs[i])) return nullptr;
  }
  std::vector<bool> direct;
  if (outputs) {
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!Fits(*outputs[i], results_[i])) return nullptr;
      bool alone = IsReady(*outputs[i]);
      for (int k = 0; alone && k < inputs_; ++k) alone = !MayMeet(*outputs[i], *inputs[k]);
      for (size_t k = 0; alone && k < i; ++k) alone = !MayMeet(*outputs[i], *outputs[k]);
      for (const ffi::Tensor& each : state.tensors) alone = alone && !MayMeet(*outputs[i], *each.GetDLTensorPtr());
      direct.push_back(alone);
    }
  }
  const std::unique_lock<std::mutex> turn = shared_->turns.Begin();
  if (forks_ != Forks()) BeginAnew();
  try {
    for (int i = 0; i < inputs_; ++i) InOwnMemory(i, inputs[i]);
    Bind(state);
    if (!positions_.Hold(seen_)) return nullptr;
    BindScratch();
    for (const Patch& each : of_inputs_) {
      each.tensor->data = static_cast<char*>(seen_[each.index]->data) + each.offset;
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      const bool given = outputs && direct[i];
      if (!given) made_[i] = NewResult(results_[i].shape, results_[i].dtype);
      addresses_[i] = given ? Address(outputs[i]) : made_[i].data_ptr();
    }
    for (const Patch& each : of_results_) {
      each.tensor->data = static_cast<char*>(addresses_[each.index]) + each.offset;
    }
    const UsesPool pool;
    ffi::Any nothing;
    for (const Call& call : calls_) call.function.CallPacked(call.operands, call.count, &nothing);
    return Finish(outputs, direct);
  } catch (const ffi::Error& error) {
    for (ffi::Tensor& each : made_) each = ffi::Tensor();
    return error;
  } catch (const std::exception& error) {
    for (ffi::Tensor& each : made_) each = ffi::Tensor();
    return ffi::Error("RuntimeError", error.what(), "");
  }
}

ffi::Any PreparedProgram::Finish(const DLTensor* const* outputs, const std::vector<bool>& direct) {
  if (outputs) {
    for (size_t i = 0; i < results_.size(); ++i) {
      if (direct[i]) continue;
      CopyElements(*made_[i].GetDLTensorPtr(), *outputs[i]);
      made_[i] = ffi::Tensor();
    }
    return true;
  }
  if (!returns_tuple_) return std::move(made_[0]);
  ffi::Array<ffi::Tensor> results;
  results.reserve(static_cast<int64_t>(made_.size()));
  for (ffi::Tensor& each : made_) results.push_back(std::move(each));
  for (ffi::Tensor& each : made_) each = ffi::Tensor();
  return results;
}

}  // namespace uir::runtime
