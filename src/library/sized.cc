// SPDX-License-Identifier: Apache-2.0
// The packed function uir.library.sized: one call of a library operator for all sizes. Its attributes have expressions
// of named sizes; the operator itself is called with their numbers.

#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "library/arguments.h"
#include "library/plan_cache.h"
#include "library/size_expression.h"
#include "runtime/error.h"

namespace uir::library {
namespace {

constexpr int64_t kMostOfASize = INT32_MAX;

/*! Fields of attributes that are texts and no expressions. */
constexpr std::array<std::string_view, 6> kNames = {"activation",    "cell", "input_layout",
                                                    "output_layout", "plan", "residual"};

[[noreturn]] void Refuse(const std::string& op, const std::string& what, const std::string& need) {
  TVM_FFI_THROW(ValueError) << "Library operator " << op << ": " << what << ".\n  need:   " << need;
  TVM_FFI_UNREACHABLE();
}

/*! What a call says of its sizes, between its inputs and its outputs. */
struct Given {
  ffi::String function, text, names;
  ffi::Shape sizes;

  std::string op() const {
    const std::string name = function;
    return name.substr(name.rfind('.') + 1);
  }
};

/*! The sizes by name; those that no tensor has are refused. */
NamedSizes SizesOf(const Given& given) {
  NamedSizes sizes;
  const std::string_view names(given.names.data(), given.names.size());
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    sizes.emplace_back(names.substr(begin, end - begin), 0);
    begin = end + 1;
  }
  if (sizes.size() != given.sizes.size()) {
    Refuse(given.op(), std::to_string(given.sizes.size()) + " sizes for the names \"" + std::string(names) + "\"",
           "a number for each name");
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t value = sizes[i].second = given.sizes[i];
    if (value < 0 || value > kMostOfASize) {
      runtime::SizeError({"The size " + std::string(sizes[i].first) + " is " + std::to_string(value) + ".", given.op(),
                          "a value from 0 to " + std::to_string(kMostOfASize), "", "call it with other sizes"});
    }
  }
  return sizes;
}

/*! Behind the quote that closes the string that begins at `open`. */
size_t EndOfString(std::string_view text, size_t open, const std::string& op) {
  for (size_t at = open + 1; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    at += text[at] == '\\';
  }
  Refuse(op, "the attributes end within a string", "a JSON object");
}

//! The attributes with numbers for their expressions; all else stays as it is, so that the operator's plan is that of
//! the same attributes from anywhere. Whether they are an operator's is seen by the operator.
std::string InNumbers(const Given& given) {
  const NamedSizes sizes = SizesOf(given);
  const std::string_view text(given.text.data(), given.text.size());
  ExpressionPlace place{given.op(), "the attributes"};
  std::string numbers;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '"') {
      numbers += text[at++];
      continue;
    }
    const size_t end = EndOfString(text, at, place.op);
    const std::string_view inside = text.substr(at + 1, end - at - 2);
    const size_t next = text.find_first_not_of(" \t\r\n", end);
    const bool names_a_field = next != std::string_view::npos && text[next] == ':';
    if (names_a_field) place.field = inside;
    if (names_a_field || std::find(kNames.begin(), kNames.end(), place.field) != kNames.end()) {
      numbers += text.substr(at, end - at);
    } else {
      numbers += std::to_string(Evaluate(inside, sizes, place));
    }
    at = end;
  }
  return numbers;
}

/*! What a call has come to: the function and its attributes. */
struct Settled {
  ffi::Function function;
  ffi::String text;
};

void AppendTo(std::string* key, const char* data, size_t bytes) {
  const auto count = static_cast<uint32_t>(bytes);
  key->append(reinterpret_cast<const char*>(&count), sizeof(count)).append(data, bytes);
}

std::shared_ptr<const Settled> Find(const Given& given) {
  static auto* cache = new PlanCache<Settled>();
  std::string key;
  key.reserve(given.function.size() + given.text.size() + given.names.size() + 8 * given.sizes.size() + 16);
  for (const ffi::String& text : {given.function, given.text, given.names}) AppendTo(&key, text.data(), text.size());
  AppendTo(&key, reinterpret_cast<const char*>(given.sizes.data()), 8 * given.sizes.size());
  return cache->Get(key, [&] {
    auto made = std::make_shared<Settled>();
    made->text = InNumbers(given);
    std::optional<ffi::Function> function = ffi::Function::GetGlobal(given.function);
    if (!function) Refuse(given.op(), "no function " + std::string(given.function), "the name of a registered one");
    made->function = *function;
    return made;
  });
}

/*! Arguments of a call for all sizes: (inputs..., function, text, names, sizes, outputs...). */
struct SizedCall {
  static constexpr int kTexts = 3, kSizes = kTexts + 1, kMostArguments = 16;

  explicit SizedCall(ffi::PackedArgs args) {
    while (inputs < args.size() && !args[inputs].as<ffi::String>()) ++inputs;
    const int outputs = args.size() - inputs - kSizes;
    if (inputs < 1 || outputs < 1) {
      TVM_FFI_THROW(ValueError) << "uir.library.sized got " << args.size()
                                << " arguments.\n  need:   inputs, three texts (function, attributes, names of "
                                   "sizes), a shape of the sizes, outputs";
    }
    given = {args[inputs].cast<ffi::String>(), args[inputs + 1].cast<ffi::String>(),
             args[inputs + 2].cast<ffi::String>(), args[inputs + kTexts].cast<ffi::Shape>()};
    settled = Find(given);
    for (int i = 0; i < outputs; ++i) empty = empty && Elements(args[args.size() - 1 - i].cast<DLTensor*>()) == 0;
    count = inputs + 1 + outputs;
    if (count > kMostArguments) {
      Refuse(given.op(), std::to_string(count) + " arguments", "at most " + std::to_string(kMostArguments));
    }
    for (int i = 0; i < inputs; ++i) views[i] = args[i];
    views[inputs] = settled->text;
    for (int i = 0; i < outputs; ++i) views[inputs + 1 + i] = args[inputs + kSizes + i];
  }

  int inputs = 0, count = 0;
  /*! No result has elements. */
  bool empty = true;
  Given given;
  std::shared_ptr<const Settled> settled;
  /*! (inputs..., text in numbers, outputs...) */
  std::array<ffi::AnyView, kMostArguments> views;
};

/*! -> function(inputs..., text in numbers, outputs...) */
void Sized(ffi::PackedArgs args, ffi::Any* result) {
  const SizedCall call(args);
  if (!call.empty) call.settled->function.CallPacked(call.views.data(), call.count, result);
}

//! What takes inputs and outputs alone: what the operator itself prepares for these numbers, else the operator.
void Prepared(ffi::PackedArgs args, ffi::Any* made) {
  const SizedCall call(args);
  if (call.empty) {
    *made = ffi::Function::FromPacked([](ffi::PackedArgs, ffi::Any*) {});
    return;
  }
  const auto prepare = ffi::Function::GetGlobal(std::string(call.given.function) + ".prepared");
  if (prepare) prepare->CallPacked(call.views.data(), call.count, made);
  if (*made != nullptr) return;
  *made = ffi::Function::FromPacked([settled = call.settled, inputs = call.inputs](ffi::PackedArgs given, ffi::Any*) {
    std::array<ffi::AnyView, SizedCall::kMostArguments> views;
    for (int i = 0; i < given.size(); ++i) views[i < inputs ? i : i + 1] = given[i];
    views[inputs] = settled->text;
    ffi::Any nothing;
    settled->function.CallPacked(views.data(), given.size() + 1, &nothing);
  });
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def_packed("uir.library.sized", Sized)
      .def_packed("uir.library.sized.prepared", Prepared)
      .def("uir.library.in_numbers", [](ffi::String function, ffi::String text, ffi::String names, ffi::Shape sizes) {
        return ffi::String(InNumbers({function, text, names, sizes}));
      });
}

}  // namespace
}  // namespace uir::library
