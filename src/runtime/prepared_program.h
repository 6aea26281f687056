// SPDX-License-Identifier: Apache-2.0
// A straight program with everything that does not change from call to call made once: tensors, their memory, and the
// arguments of every function. A call puts in the addresses of its tensors and goes through the functions.
#pragma once

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/tensor.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/large_pages.h"
#include "runtime/positions.h"
#include "runtime/straight_program.h"
#include "runtime/turns.h"

namespace uir::runtime {

/*! \brief Memory of the host that grows; what was in it is gone then. */
class GrowingMemory {
 public:
  /*! \brief At least so many bytes. */
  char* AtLeast(int64_t bytes);

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  std::unique_ptr<char, Free> data_;
  int64_t bytes_ = 0;
};

/*! \brief What programs share whose calls take turns. */
struct CallsInTurn {
  Turns turns;
  GrowingMemory scratch;
  ReadOften read_often;
};

/*! \brief Tensors of a state: the same at every call. */
struct BoundState {
  std::vector<ffi::Tensor> tensors;
};

class PreparedProgram {
 public:
  /*! \param arguments Types of the inputs, then of the state's tensors.
   *  \param inputs How many of them are inputs. */
  PreparedProgram(StraightProgram program, std::vector<TensorType> arguments, int inputs, Positions positions,
                  std::shared_ptr<CallsInTurn> shared);

  /*! \brief One call.
   *  \param outputs Tensors for the results, as many; null: they are made.
   *  \return A tensor or an array of them; true where `outputs` are given; None where inputs or outputs do not fit or a
   *  position lies beyond the state, and nothing was done; an Error of what failed on the way. */
  ffi::Any Run(const DLTensor* const* inputs, const DLTensor* const* outputs, const BoundState& state);

  int num_inputs() const { return inputs_; }
  int num_results() const { return static_cast<int>(results_.size()); }

 private:
  /*! Where an address goes that a call brings. */
  struct Patch {
    DLTensor* tensor;
    int index;
    int64_t offset;
  };
  struct Call {
    ffi::Function function;
    const ffi::AnyView* operands;
    int32_t count;
  };

  void Prepare(StraightProgram program);
  /*! What a call of the process that this one was forked from may have left half done. */
  void BeginAnew();
  void Bind(const BoundState& state);
  void BindScratch();
  const DLTensor* InOwnMemory(int input, const DLTensor* given);
  ffi::Any Finish(const DLTensor* const* outputs, const std::vector<bool>& direct);

  std::vector<TensorType> arguments_;
  int inputs_;
  Positions positions_;
  std::shared_ptr<CallsInTurn> shared_;
  std::vector<TensorType> results_;
  bool returns_tuple_ = false;
  int64_t scratch_bytes_ = 0;

  /*! What the program's tensors are to functions; `held_` is what constants belong to. */
  std::vector<ffi::Tensor> tensors_;
  std::vector<ffi::Any> held_, values_;
  std::vector<ffi::AnyView> operands_;
  std::vector<Call> calls_;
  std::vector<Patch> of_inputs_, of_state_, of_results_, of_scratch_;
  /*! What the addresses are now. */
  uint64_t forks_ = Forks();
  const char* scratch_ = nullptr;
  std::vector<void*> state_;
  /*! The arguments of a call as the functions see them. */
  std::vector<ffi::Tensor> as_given_;
  std::vector<const DLTensor*> seen_;
  std::vector<GrowingMemory> copies_;
  std::vector<ffi::Tensor> made_;
  std::vector<void*> addresses_;
};

}  // namespace uir::runtime
