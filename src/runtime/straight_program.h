// SPDX-License-Identifier: Apache-2.0
// A program of TVM's virtual machine without branches, read once for tensors of known shapes: what is left of it are
// calls of functions on tensors, each at a known place.
#pragma once

#include <dlpack/dlpack.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tensor_type.h"

namespace tvm::runtime::vm {
class VMExecutable;
}

namespace uir::runtime {

namespace ffi = tvm::ffi;

/*! \brief What a tensor of a program lies in. */
enum class Memory { kArgument, kScratch, kResult, kConstant };

/*! \brief A contiguous tensor: `offset` bytes behind the beginning of an argument, of the scratch memory, of a result,
 * or of the data of a constant. */
struct ProgramTensor {
  Memory memory = Memory::kScratch;
  /*! \brief Number of the argument or result. */
  int index = 0;
  int64_t offset = 0;
  ffi::Shape shape;
  DLDataType dtype{};
  /*! \brief The data of a constant. */
  char* data = nullptr;
};

/*! \brief What a function is called with: a tensor of the program by its number, or a value. */
struct ProgramOperand {
  int tensor = -1;
  ffi::Any value;
};

struct ProgramCall {
  std::string name;
  ffi::Function function;
  std::vector<ProgramOperand> operands;
};

/*! \brief What is left of a function of the virtual machine. */
struct StraightProgram {
  std::vector<ProgramTensor> tensors;
  std::vector<ProgramCall> calls;
  std::vector<TensorType> results;
  bool returns_tuple = false;
  int64_t scratch_bytes = 0;
  /*! \brief What constants belong to. */
  std::vector<ffi::Any> held;
};

/*! \brief Reads `main` for tensors in the host's memory.
 *  \param code The executable, with the functions that it calls in its imports.
 *  \param arguments Types of the tensors that it takes.
 *  \param sizes Where it takes numbers for open sizes behind them.
 *  \return Nothing where it has branches, gives tensors out that are not made in it, or where its shapes are found
 *  while it runs; `why` then says which. */
std::optional<StraightProgram> ReadProgram(const tvm::runtime::vm::VMExecutable& code,
                                           const std::vector<TensorType>& arguments,
                                           const std::optional<ffi::Shape>& sizes, std::string* why);

}  // namespace uir::runtime
