// SPDX-License-Identifier: Apache-2.0
// The global function uir.runtime.programs: executables of TVM's virtual machine as functions that take callers'
// tensors and need no machine.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>
#include <tvm/runtime/base.h>
#include <tvm/runtime/vm/executable.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/prepared_program.h"

namespace uir::runtime {
namespace {

using tvm::runtime::vm::VMExecutable;

/*! The tensors of a call; whether all are. */
bool TensorsOf(ffi::PackedArgs args, std::vector<const DLTensor*>* tensors) {
  tensors->resize(args.size());
  for (int i = 0; i < args.size(); ++i) {
    const std::optional<DLTensor*> tensor = args[i].try_cast<DLTensor*>();
    if (!tensor) return false;
    (*tensors)[i] = *tensor;
  }
  return true;
}

/*! (inputs...) or (outputs..., inputs...) with one state; see PreparedProgram::Run. */
ffi::Function Runner(std::shared_ptr<PreparedProgram> program, std::shared_ptr<BoundState> state, bool into) {
  return ffi::Function::FromPacked([program, state, into](ffi::PackedArgs args, ffi::Any* result) {
    const int outputs = into ? program->num_results() : 0;
    thread_local std::vector<const DLTensor*> tensors;
    std::vector<const DLTensor*> given = std::move(tensors);
    if (args.size() == outputs + program->num_inputs() && TensorsOf(args, &given)) {
      *result = program->Run(given.data() + outputs, into ? given.data() : nullptr, *state);
    }
    tensors = std::move(given);
  });
}

/*! (shapes, types, how many are inputs, sizes or None, rows of positions as JSON)
 *  -> why not, or a function (tensors of the state) -> [run, run into given outputs] */
ffi::Any Prepared(const VMExecutable& code, const std::shared_ptr<CallsInTurn>& shared,
                  const ffi::Array<ffi::Shape>& shapes, const ffi::Array<ffi::String>& types, int64_t inputs,
                  const ffi::Optional<ffi::Shape>& sizes, const ffi::String& rows) {
  std::vector<TensorType> arguments;
  for (size_t i = 0; i < shapes.size(); ++i) arguments.push_back({shapes[i], ffi::StringToDLDataType(types[i])});
  for (const TensorType& each : arguments) {
    if (each.dtype.bits % 8 != 0) return ffi::String("elements are parts of bytes");
  }
  Positions positions;
  if (!positions.Read(ffi::json::Parse(rows))) return ffi::String("positions are computed in another way");
  std::string why;
  const std::optional<ffi::Shape> numbers = sizes.has_value() ? std::optional<ffi::Shape>(*sizes) : std::nullopt;
  std::optional<StraightProgram> program = ReadProgram(code, arguments, numbers, &why);
  if (!program) return ffi::String(why);
  auto prepared = std::make_shared<PreparedProgram>(*std::move(program), std::move(arguments), static_cast<int>(inputs),
                                                    std::move(positions), shared);
  return ffi::Function::FromTyped([prepared](ffi::Array<ffi::Tensor> tensors) {
    auto state = std::make_shared<BoundState>();
    state->tensors.assign(tensors.begin(), tensors.end());
    return ffi::Array<ffi::Function>{Runner(prepared, state, false), Runner(prepared, state, true)};
  });
}

/*! What prepares programs of one executable: they take turns. */
ffi::Function Programs(const ffi::Module& module) {
  if (std::string(module->kind()) != "relax.VMExecutable") {
    TVM_FFI_THROW(ValueError) << "uir.runtime.programs got a module of kind " << std::string(module->kind())
                              << ".\n  need:   relax.VMExecutable";
  }
  auto shared = std::make_shared<CallsInTurn>();
  return ffi::Function::FromTyped([module, shared](ffi::Array<ffi::Shape> shapes, ffi::Array<ffi::String> types,
                                                   int64_t inputs, ffi::Optional<ffi::Shape> sizes, ffi::String rows) {
    return Prepared(*static_cast<const VMExecutable*>(module.get()), shared, shapes, types, inputs, sizes, rows);
  });
}

TVM_FFI_STATIC_INIT_BLOCK() { ffi::reflection::GlobalDef().def("uir.runtime.programs", &Programs); }

}  // namespace
}  // namespace uir::runtime
