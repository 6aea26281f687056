// SPDX-License-Identifier: Apache-2.0
#include "runtime/straight_program.h"

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/string.h>
#include <tvm/runtime/base.h>
#include <tvm/runtime/vm/builtin.h>
#include <tvm/runtime/vm/executable.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <unordered_map>
#include <utility>

namespace uir::runtime {
namespace {

using tvm::runtime::vm::Instruction;
using tvm::runtime::vm::MakeShapeCode;
using tvm::runtime::vm::MatchShapeCode;
using tvm::runtime::vm::Opcode;
using tvm::runtime::vm::VMExecutable;
using tvm::runtime::vm::VMFuncInfo;

/*! What ends the reading: the program stays with the virtual machine. */
struct NotStraight {
  std::string why;
};

[[noreturn]] void Refuse(std::string why) { throw NotStraight{std::move(why)}; }

/*! What is known of a register. */
struct Value {
  enum Kind { kNothing, kKnown, kTensor, kStorage, kTuple } kind = kNothing;
  ffi::Any known;
  int id = -1;
  std::vector<Value> items;

  static Value Known(ffi::Any value) { return {kKnown, std::move(value), -1, {}}; }
  static Value Tensor(int id) { return {kTensor, {}, id, {}}; }
  static Value Storage(int id) { return {kStorage, {}, id, {}}; }
};

/*! Memory that the program asks for. */
struct StorageUse {
  int64_t bytes = 0;
  /*! The calls that use it first and last; none: -1. */
  int first = -1, last = -1;
  int64_t offset = 0;
  int result = -1;
};

class Reader;
using Builtin = Value (Reader::*)(const std::vector<Value>&);

/*! Follows the instructions of one function. */
class Reader {
 public:
  Reader(const VMExecutable& code, const std::vector<TensorType>& arguments, const std::optional<ffi::Shape>& sizes)
      : code_(code) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      registers_[static_cast<int64_t>(i)] =
          Add({Memory::kArgument, static_cast<int>(i), 0, arguments[i].shape, arguments[i].dtype, nullptr}, -1);
    }
    count_ = static_cast<int64_t>(arguments.size());
    if (sizes) registers_[count_++] = Value::Known(*sizes);
  }

  StraightProgram Read() {
    const auto found = code_.func_map.find("main");
    if (found == code_.func_map.end()) Refuse("it has no function main");
    const VMFuncInfo& main = code_.func_table[found->second];
    if (main.kind != VMFuncInfo::FuncKind::kVMFunc || main.num_args != count_) Refuse("its main takes other arguments");
    for (int64_t at = main.start_instr; at < main.end_instr; ++at) {
      const Instruction instruction = code_.GetInstruction(at);
      if (instruction.op == Opcode::Ret) {
        Return(Register(instruction.result));
        Arrange();
        return std::move(program_);
      }
      if (instruction.op != Opcode::Call) Refuse("it has branches");
      Call(instruction);
    }
    Refuse("it does not return");
  }

 private:
  static const std::unordered_map<std::string, Builtin>& Builtins() {
    static const auto* table = new std::unordered_map<std::string, Builtin>{
        {"vm.builtin.check_tensor_info", &Reader::CheckTensor},
        {"vm.builtin.check_shape_info", &Reader::Nothing},
        {"vm.builtin.match_shape", &Reader::MatchShape},
        {"vm.builtin.make_shape", &Reader::MakeShape},
        {"vm.builtin.alloc_shape_heap", &Reader::AllocHeap},
        {"vm.builtin.null_value", &Reader::Nothing},
        {"vm.builtin.alloc_storage", &Reader::AllocStorage},
        {"vm.builtin.alloc_tensor", &Reader::AllocTensor},
        {"vm.builtin.reshape", &Reader::Reshape},
        {"vm.builtin.make_tuple", &Reader::MakeTuple},
    };
    return *table;
  }

  // --- values ---------------------------------------------------------------------------------------

  Value Add(ProgramTensor tensor, int storage) {
    program_.tensors.push_back(std::move(tensor));
    storage_of_.push_back(storage);
    return Value::Tensor(static_cast<int>(program_.tensors.size()) - 1);
  }

  const Value& Register(int64_t name) const {
    static const Value nothing;
    const auto found = registers_.find(name);
    return found == registers_.end() ? nothing : found->second;
  }

  Value Operand(Instruction::Arg arg) {
    switch (arg.kind()) {
      case Instruction::ArgKind::kImmediate:
        return Value::Known(static_cast<int64_t>(arg.value()));
      case Instruction::ArgKind::kConstIdx:
        return Constant(arg.value());
      case Instruction::ArgKind::kRegister:
        return Register(arg.value());
      default:
        Refuse("it passes functions");
    }
  }

  Value Constant(int64_t index) {
    const ffi::Any& constant = code_.constants[index];
    std::optional<ffi::Tensor> tensor = constant.try_cast<ffi::Tensor>();
    if (!tensor) return Value::Known(constant);
    const auto found = constants_.find(index);
    if (found != constants_.end()) return Value::Tensor(found->second);
    if (tensor->device().device_type != kDLCPU) Refuse("a constant lies elsewhere");
    program_.held.push_back(constant);
    const DLTensor* data = tensor->GetDLTensorPtr();
    const ffi::Shape shape(data->shape, data->shape + data->ndim);
    char* begin = static_cast<char*>(data->data) + data->byte_offset;
    const Value made = Add({Memory::kConstant, 0, 0, shape, data->dtype, begin}, -1);
    constants_[index] = made.id;
    return made;
  }

  template <typename T>
  static T As(const Value& value, const char* what) {
    if (value.kind == Value::kKnown) {
      std::optional<T> found = value.known.try_cast<T>();
      if (found) return *std::move(found);
    }
    Refuse(std::string(what) + " is found while it runs");
  }

  /*! The numbers of a shape, or of a tensor's shape. */
  ffi::Shape ShapeOf(const Value& value) const {
    if (value.kind == Value::kTensor) return program_.tensors[value.id].shape;
    return As<ffi::Shape>(value, "a shape");
  }

  int64_t* Heap(const Value& value) {
    if (value.kind != Value::kKnown || !heap_.defined()) Refuse("sizes are kept nowhere");
    return static_cast<int64_t*>(heap_.data_ptr());
  }

  // --- functions of the virtual machine -----------------------------------------------------------------

  Value Nothing(const std::vector<Value>&) { return {}; }

  /*! (tensor, rank, type, what) */
  Value CheckTensor(const std::vector<Value>& given) {
    if (given.size() < 3 || given[0].kind != Value::kTensor) Refuse("an argument is no tensor");
    const ProgramTensor& tensor = program_.tensors[given[0].id];
    const auto rank = As<int64_t>(given[1], "a rank");
    const std::optional<DLDataType> dtype =
        given[2].kind == Value::kKnown ? given[2].known.try_cast<DLDataType>() : std::nullopt;
    const bool fits = rank < 0 || rank == static_cast<int64_t>(tensor.shape.size());
    if (!fits || (dtype && !(*dtype == tensor.dtype))) Refuse("its arguments have other types");
    return {};
  }

  /*! (tensor or shape, heap, rank, (code, number)..., what) */
  Value MatchShape(const std::vector<Value>& given) {
    const ffi::Shape shape = ShapeOf(given.at(0));
    const auto rank = As<int64_t>(given.at(2), "a rank");
    if (rank != static_cast<int64_t>(shape.size())) Refuse("its arguments have other shapes");
    for (int64_t d = 0; d < rank; ++d) {
      const auto code = static_cast<MatchShapeCode>(As<int64_t>(given.at(3 + 2 * d), "a shape's code"));
      const auto number = As<int64_t>(given.at(4 + 2 * d), "a shape's number");
      if (code == MatchShapeCode::kNoOp) continue;
      if (code == MatchShapeCode::kStoreToHeap) {
        Heap(given[1])[number] = shape[d];
        continue;
      }
      if (shape[d] != (code == MatchShapeCode::kAssertEqualToImm ? number : Heap(given[1])[number])) {
        Refuse("its arguments have other shapes");
      }
    }
    return {};
  }

  /*! (heap, rank, (code, number)...) */
  Value MakeShape(const std::vector<Value>& given) {
    std::vector<int64_t> shape;
    for (int64_t d = 0; d < As<int64_t>(given.at(1), "a rank"); ++d) {
      const auto code = static_cast<MakeShapeCode>(As<int64_t>(given.at(2 + 2 * d), "a shape's code"));
      const auto number = As<int64_t>(given.at(3 + 2 * d), "a shape's number");
      shape.push_back(code == MakeShapeCode::kUseImm ? number : Heap(given[0])[number]);
    }
    return Value::Known(ffi::Shape(shape.begin(), shape.end()));
  }

  /*! (machine, cells): what shapes are computed in, now. */
  Value AllocHeap(const std::vector<Value>& given) {
    // Compiled code takes tensors to lie on cache lines, as those of TVM do, and stores several sizes at a time.
    struct Cells {
      void AllocData(DLTensor* tensor) {
        const size_t bytes = sizeof(int64_t) * static_cast<size_t>(std::max<int64_t>(1, tensor->shape[0]));
        tensor->data = ::operator new(bytes, std::align_val_t(64));
        std::memset(tensor->data, 0, bytes);
      }
      void FreeData(DLTensor* tensor) { ::operator delete(tensor->data, std::align_val_t(64)); }
    };
    const auto cells = As<int64_t>(given.at(1), "a number of sizes");
    heap_ = ffi::Tensor::FromNDAlloc(Cells(), ffi::ShapeView(&cells, 1), DLDataType{kDLInt, 64, 1}, {kDLCPU, 0});
    return Value::Known(heap_);
  }

  /*! (machine, bytes, device, type, scope) */
  Value AllocStorage(const std::vector<Value>& given) {
    const ffi::Shape size = ShapeOf(given.at(1));
    if (As<int64_t>(given.at(2), "a device") > 0) Refuse("it uses several devices");
    storages_.push_back({TensorType{size, As<DLDataType>(given.at(3), "a type")}.bytes()});
    return Value::Storage(static_cast<int>(storages_.size()) - 1);
  }

  /*! (storage, offset, shape, type, [device]) */
  Value AllocTensor(const std::vector<Value>& given) {
    if (given.at(0).kind != Value::kStorage) Refuse("memory comes from elsewhere");
    const auto offset = As<int64_t>(given.at(1), "an offset");
    const int storage = given[0].id;
    return Add({Memory::kScratch, 0, offset, ShapeOf(given.at(2)), As<DLDataType>(given.at(3), "a type"), nullptr},
               storage);
  }

  /*! (tensor, shape) */
  Value Reshape(const std::vector<Value>& given) {
    if (given.at(0).kind != Value::kTensor) Refuse("it reshapes what is found while it runs");
    ProgramTensor view = program_.tensors[given[0].id];
    const int storage = storage_of_[given[0].id];
    view.shape = ShapeOf(given.at(1));
    if (view.shape.Product() != program_.tensors[given[0].id].shape.Product()) Refuse("a shape has other elements");
    return Add(std::move(view), storage);
  }

  Value MakeTuple(const std::vector<Value>& given) { return {Value::kTuple, {}, -1, given}; }

  // --- instructions -------------------------------------------------------------------------------------

  void Call(const Instruction& instruction) {
    const VMFuncInfo& callee = code_.func_table[instruction.func_idx];
    if (callee.kind != VMFuncInfo::FuncKind::kPackedFunc) Refuse("it calls functions of the virtual machine");
    std::vector<Value> given;
    bool computes_sizes = false;
    for (int64_t i = 0; i < instruction.num_args; ++i) {
      given.push_back(Operand(instruction.args[i]));
      computes_sizes = computes_sizes || IsHeap(given.back());
    }
    Value made;
    const auto builtin = Builtins().find(callee.name);
    if (builtin != Builtins().end()) {
      made = (this->*builtin->second)(given);
    } else if (callee.name.rfind("vm.", 0) == 0) {
      Refuse("it calls " + callee.name);
    } else if (computes_sizes) {
      if (given.size() != 1) Refuse("it passes sizes to " + callee.name);
      Function(callee.name)(heap_);
    } else {
      CallOnTensors(callee.name, given);
    }
    if (instruction.dst != Instruction::kVoidRegister) registers_[instruction.dst] = std::move(made);
  }

  bool IsHeap(const Value& value) const {
    if (value.kind != Value::kKnown || !heap_.defined()) return false;
    const std::optional<ffi::Tensor> tensor = value.known.try_cast<ffi::Tensor>();
    return tensor && tensor->same_as(heap_);
  }

  ffi::Function Function(const std::string& name) const {
    for (const ffi::Any& each : code_.imports()) {
      ffi::Optional<ffi::Function> found = each.cast<ffi::Module>()->GetFunction(name, true);
      if (found.has_value()) return *found;
    }
    std::optional<ffi::Function> found = ffi::Function::GetGlobal(name);
    if (!found) Refuse("there is no function " + name);
    return *found;
  }

  void CallOnTensors(const std::string& name, const std::vector<Value>& given) {
    ProgramCall call{name, Function(name), {}};
    const int number = static_cast<int>(program_.calls.size());
    for (const Value& value : given) {
      if (value.kind == Value::kTensor) {
        call.operands.push_back({value.id, {}});
        Use(storage_of_[value.id], number);
      } else if (value.kind == Value::kKnown) {
        call.operands.push_back({-1, value.known});
      } else {
        Refuse(name + " takes what is found while it runs");
      }
    }
    program_.calls.push_back(std::move(call));
  }

  void Use(int storage, int call) {
    if (storage < 0) return;
    if (storages_[storage].first < 0) storages_[storage].first = call;
    storages_[storage].last = call;
  }

  void Return(const Value& value) {
    program_.returns_tuple = value.kind == Value::kTuple;
    const std::vector<Value> items = program_.returns_tuple ? value.items : std::vector<Value>{value};
    for (const Value& item : items) {
      if (item.kind != Value::kTensor) Refuse("a result is no tensor, or nested");
      const ProgramTensor& tensor = program_.tensors[item.id];
      const int storage = storage_of_[item.id];
      // what a caller gave, or gets twice, is his own or one tensor with the machine
      if (storage < 0 || storages_[storage].result >= 0 || tensor.offset != 0) Refuse("a result is not its own");
      storages_[storage].result = static_cast<int>(program_.results.size());
      program_.results.push_back({tensor.shape, tensor.dtype});
      if (program_.results.back().bytes() < storages_[storage].bytes) Refuse("a result is a part of its memory");
    }
  }

  // --- scratch memory -----------------------------------------------------------------------------------

  /*! Gives every storage a place that nothing else uses from its first call to its last. */
  void Arrange() {
    std::vector<StorageUse*> order;
    for (StorageUse& each : storages_) {
      each.bytes = (std::max<int64_t>(each.bytes, 1) + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
      if (each.result < 0 && each.first >= 0) order.push_back(&each);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const StorageUse* a, const StorageUse* b) { return a->first < b->first; });
    std::map<int64_t, const StorageUse*> live;
    for (StorageUse* each : order) {
      for (auto it = live.begin(); it != live.end();) it = it->second->last < each->first ? live.erase(it) : ++it;
      int64_t at = 0;
      for (const auto& [offset, other] : live) {
        if (offset - at >= each->bytes) break;
        at = offset + other->bytes;
      }
      each->offset = at;
      live[at] = each;
      program_.scratch_bytes = std::max(program_.scratch_bytes, at + each->bytes);
    }
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      if (storage_of_[i] < 0) continue;
      const StorageUse& storage = storages_[storage_of_[i]];
      ProgramTensor& tensor = program_.tensors[i];
      if (storage.result >= 0) {
        tensor.memory = Memory::kResult;
        tensor.index = storage.result;
      } else {
        tensor.offset += storage.offset;
      }
    }
  }

  const VMExecutable& code_;
  StraightProgram program_;
  int64_t count_ = 0;
  std::unordered_map<int64_t, Value> registers_;
  std::unordered_map<int64_t, int> constants_;
  std::vector<StorageUse> storages_;
  /*! By tensor; -1: of a caller or constant. */
  std::vector<int> storage_of_;
  ffi::Tensor heap_;
};

}  // namespace

std::optional<StraightProgram> ReadProgram(const VMExecutable& code, const std::vector<TensorType>& arguments,
                                           const std::optional<ffi::Shape>& sizes, std::string* why) {
  try {
    return Reader(code, arguments, sizes).Read();
  } catch (const NotStraight& found) {
    *why = found.why;
    return std::nullopt;
  }
}

}  // namespace uir::runtime
