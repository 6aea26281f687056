// SPDX-License-Identifier: Apache-2.0
// Packed functions of library operators on `ext_dev`: a vendor's library computes on a device, the CPU's on its model.
#pragma once

#include <memory>
#include <string>

#include "library/arguments.h"
#include "library/host_model.h"
#include "library/plan_cache.h"
#include "runtime/device_memory.h"

namespace uir::library {

/*! Refuses tensors of other sizes than the attributes say. */
void CheckSizes(const MatmulAttrs& attrs, const Arguments& in, const char* op);
void CheckSizes(const Conv2dAttrs& attrs, const Arguments& in, const char* op);

/*! Parsed once: a model calls each operator with the same text again and again. */
template <typename Attrs>
std::shared_ptr<const Attrs> Parsed(const ffi::String& text) {
  static auto* cache = new PlanCache<Attrs>();
  return cache->Get(std::string(text), [&] { return std::make_shared<Attrs>(Attrs::Parse(text)); });
}

/*! An operator where its tensors are: `Run` on a device, `cpu_function` on the host model of one. */
template <typename Attrs, void (*Run)(const Attrs&, const Arguments&)>
void RunWhereTensorsAre(const char* op, const char* cpu_function, const ffi::PackedArgs& args) {
  const ffi::String text = AttrsText(args, op);
  const DLTensor* out = args[args.size() - 1].cast<DLTensor*>();
  CheckTensor(out, op, "out", kDLExtDev);
  if (runtime::PlaceOf(out->device) == "model") return OnHostModel(cpu_function, args);
  const std::shared_ptr<const Attrs> attrs = Parsed<Attrs>(text);
  const Arguments in = ReadArguments(args, attrs->epilogue, op, kDLExtDev);
  CheckSizes(*attrs, in, op);
  if (NothingOnDevice(*attrs)) return;
  Run(*attrs, in);
}

}  // namespace uir::library
