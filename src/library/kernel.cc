// SPDX-License-Identifier: Apache-2.0
#include "library/kernel.h"

#include <tvm/ffi/error.h>

#include <cstdlib>

#include "base/large_pages.h"

namespace uir::library {

void AlignedBuffer::Free::operator()(char* p) const { std::free(p); }

AlignedBuffer::AlignedBuffer(size_t bytes) {
  if (bytes == 0) return;
  data_.reset(static_cast<char*>(AlignedBlock(64, (bytes + 63) / 64 * 64)));
}

char* ThreadScratch(int slot, size_t bytes) {
  struct Slot {
    AlignedBuffer buffer;
    size_t bytes = 0;
  };
  thread_local std::vector<Slot> slots;
  if (slots.size() <= static_cast<size_t>(slot)) slots.resize(slot + 1);
  Slot& mine = slots[slot];
  if (mine.bytes < bytes || !mine.buffer.data()) {
    mine.buffer = AlignedBuffer(bytes ? bytes : 64);
    mine.bytes = bytes;
  }
  return mine.buffer.data();
}

struct Kernel::Context {
  dnn::StreamHandle stream = nullptr;
  std::vector<dnn::ExecArg> args;
  AlignedBuffer scratchpad;

  ~Context() {
    for (dnn::ExecArg& arg : args) dnn::Loaded().memory_destroy(arg.memory);
    if (stream) dnn::Loaded().stream_destroy(stream);
  }
};

Kernel::Kernel(dnn::PdHandle pd, std::vector<std::pair<int, const dnn::MdTag*>> operands) : pd_(pd) {
  const dnn::Api& api = dnn::Loaded();
  const char* name = "";
  api.primitive_desc_query(pd_, dnn::kQueryImplementation, 0, &name);
  implementation_ = name;
  dnn::Check(api.primitive_create(&primitive_, pd_), "primitive_create");
  for (const auto& [id, md] : operands) {
    ids_.push_back(id);
    dnn::MdHandle copy = nullptr;
    dnn::Check(api.memory_desc_clone(&copy, md), "memory_desc_clone");
    mds_.emplace_back(copy);
  }
}

Kernel::~Kernel() {
  stock_.clear();
  if (primitive_) dnn::Loaded().primitive_destroy(primitive_);
  if (pd_) dnn::Loaded().primitive_desc_destroy(pd_);
}

const dnn::MdTag* Kernel::layout(dnn::Query which) const {
  return dnn::Loaded().primitive_desc_query_md(pd_, which, 0);
}

std::unique_ptr<Kernel::Context> Kernel::Take() const {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!stock_.empty()) {
      std::unique_ptr<Context> context = std::move(stock_.back());
      stock_.pop_back();
      return context;
    }
  }
  const dnn::Api& api = dnn::Loaded();
  auto context = std::make_unique<Context>();
  dnn::Check(api.stream_create(&context->stream, api.engine, dnn::kInOrder), "stream_create");
  auto add = [&](int id, const dnn::MdTag* md, void* data) {
    dnn::MemoryHandle memory = nullptr;
    dnn::Check(api.memory_create(&memory, md, api.engine, data), "memory_create");
    context->args.push_back({id, memory});
  };
  for (size_t i = 0; i < ids_.size(); ++i) add(ids_[i], mds_[i].get(), nullptr);
  const dnn::MdTag* scratchpad = layout(dnn::kQueryScratchpad);
  if (size_t bytes = scratchpad ? api.memory_desc_get_size(scratchpad) : 0) {
    context->scratchpad = AlignedBuffer(bytes);
    add(dnn::kScratchpad, scratchpad, context->scratchpad.data());
  }
  return context;
}

void Kernel::Run(void* const* data) const {
  const dnn::Api& api = dnn::Loaded();
  std::unique_ptr<Context> context = Take();
  for (size_t i = 0; i < ids_.size(); ++i) api.memory_set_data_handle(context->args[i].memory, data[i]);
  int status =
      api.primitive_execute(primitive_, context->stream, static_cast<int>(context->args.size()), context->args.data());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stock_.push_back(std::move(context));
  }
  dnn::Check(status, "primitive_execute");
}

EpilogueAttr::EpilogueAttr(const Epilogue& epilogue, const dnn::MdTag* bias, const dnn::MdTag* residual) {
  const dnn::Api& api = dnn::Loaded();
  dnn::PostOpsHandle ops = nullptr;
  dnn::Check(api.primitive_attr_create(&attr_), "primitive_attr_create");
  dnn::Check(api.primitive_attr_set_scratchpad_mode(attr_, dnn::kScratchpadUser), "primitive_attr_set_scratchpad_mode");
  dnn::Check(api.post_ops_create(&ops), "post_ops_create");
  int count = 0;
  auto eltwise = [&](int algorithm, float alpha, float beta = 0.0f) {
    dnn::Check(api.post_ops_append_eltwise(ops, algorithm, alpha, beta), "post_ops_append_eltwise");
    ++count;
  };
  auto add = [&](const dnn::MdTag* md) {
    dnn::Check(api.post_ops_append_binary(ops, dnn::kBinaryAdd, md), "post_ops_append_binary");
    operands_.emplace_back((dnn::kPostOp * (count + 1)) | dnn::kBinarySource, md);
    ++count;
  };
  // The primitive's own bias comes before every post-op, the scale does not
  // apply to it.
  if (epilogue.alpha != 1.0) eltwise(dnn::kLinear, static_cast<float>(epilogue.alpha));
  if (epilogue.bias) {
    if (epilogue.alpha != 1.0) {
      add(bias);
    } else {
      direct_bias_ = bias;
      operands_.emplace_back(dnn::kBias, bias);
    }
  }
  if (epilogue.residual == Residual::kBeforeActivation) add(residual);
  // SiLU is oneDNN's swish with its factor 1.
  if (epilogue.activation != Activation::kNone) {
    const bool silu = epilogue.activation == Activation::kSilu;
    eltwise(AlgorithmOf(epilogue.activation), silu ? 1.0f : epilogue.parameters[0], epilogue.parameters[1]);
  }
  if (epilogue.residual == Residual::kAfterActivation) add(residual);
  dnn::Check(api.primitive_attr_set_post_ops(attr_, ops), "primitive_attr_set_post_ops");
  api.post_ops_destroy(ops);
}

EpilogueAttr::~EpilogueAttr() {
  if (attr_) dnn::Loaded().primitive_attr_destroy(attr_);
}

std::unique_ptr<Kernel> MakeReorder(const dnn::MdTag* from, const dnn::MdTag* to) {
  const dnn::Api& api = dnn::Loaded();
  if (api.memory_desc_equal(from, to)) return nullptr;
  dnn::PdHandle pd = nullptr;
  EpilogueAttr attr({}, nullptr, nullptr);
  dnn::Check(api.reorder_primitive_desc_create(&pd, from, api.engine, to, api.engine, attr.get()),
             "reorder_primitive_desc_create");
  return std::make_unique<Kernel>(
      pd, std::vector<std::pair<int, const dnn::MdTag*>>{{dnn::kSource, from}, {dnn::kDestination, to}});
}

}  // namespace uir::library
