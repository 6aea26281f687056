// SPDX-License-Identifier: Apache-2.0
#include "library/attrs.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/json.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace uir::library {
namespace {

namespace json = tvm::ffi::json;

/*! One JSON object with typed access; errors name operator and field. */
class Fields {
 public:
  Fields(const char* op, const std::string& text) : op_(op) {
    tvm::ffi::String error;
    json::Value value = json::Parse(text, &error);
    if (!error.empty()) Fail("the attributes", "are not JSON: " + std::string(error));
    auto object = value.as<json::Object>();
    if (!object) Fail("the attributes", "must be a JSON object");
    object_ = *object;
  }
  Fields(const char* op, json::Object object) : op_(op), object_(std::move(object)) {}

  std::vector<json::Object> Objects(const char* name) const {
    auto list = Get(name).as<json::Array>();
    if (!list) Fail(name, "must be a list of JSON objects");
    std::vector<json::Object> out;
    for (const json::Value& value : *list) {
      auto object = value.as<json::Object>();
      if (!object) Fail(name, "must be a list of JSON objects");
      out.push_back(*object);
    }
    return out;
  }

  int64_t Int(const char* name) const { return ToInt(Get(name), name); }

  /*! null: there is none. */
  std::optional<int64_t> MaybeInt(const char* name) const {
    const json::Value value = Get(name);
    return value == nullptr ? std::nullopt : std::optional<int64_t>(ToInt(value, name));
  }

  bool Flag(const char* name) const {
    auto value = Get(name).as<bool>();
    if (!value) Fail(name, "must be true or false");
    return *value;
  }

  double Number(const char* name) const {
    json::Value value = Get(name);
    if (auto number = value.as<double>()) return *number;
    return static_cast<double>(ToInt(value, name));
  }

  std::string Text(const char* name) const {
    auto value = Get(name).as<tvm::ffi::String>();
    if (!value) Fail(name, "must be a string");
    return *value;
  }

  std::vector<int64_t> Ints(const char* name) const {
    auto list = Get(name).as<json::Array>();
    if (!list) Fail(name, "must be a list of integers");
    std::vector<int64_t> out;
    for (const json::Value& value : *list) out.push_back(ToInt(value, name));
    return out;
  }

  std::vector<int64_t> Ints(const char* name, size_t count) const {
    std::vector<int64_t> out = Ints(name);
    if (out.size() != count) {
      Fail(name, "has " + std::to_string(out.size()) + " numbers, " + std::to_string(count) + " are needed");
    }
    return out;
  }

  OperandView View(const char* name, size_t rank) const {
    auto list = Get(name).as<json::Array>();
    if (!list || list->size() != 2) Fail(name, "must be [offset, [strides]]");
    auto strides = (*list)[1].as<json::Array>();
    if (!strides || strides->size() != rank) Fail(name, "needs " + std::to_string(rank) + " strides");
    OperandView view;
    view.offset = ToInt((*list)[0], name);
    for (const json::Value& value : *strides) view.strides.push_back(ToInt(value, name));
    for (int64_t stride : view.strides) {
      if (stride < 0) Fail(name, "has the negative stride " + std::to_string(stride));
    }
    if (view.offset < 0) Fail(name, "has the negative offset " + std::to_string(view.offset));
    return view;
  }

  void Positive(const char* name, int64_t value) const { AtLeast(1, name, value); }

  void NotNegative(const char* name, int64_t value) const { AtLeast(0, name, value); }

  /*! 0 where it is left out. */
  int64_t IntIfAny(const char* name) const { return Has(name) ? Int(name) : 0; }

  Epilogue ParseEpilogue() const {
    Epilogue epilogue;
    epilogue.alpha = Number("alpha");
    epilogue.bias = Flag("bias");
    epilogue.residual = ResidualOf(Text("residual"));
    SetActivation(Text("activation"), &epilogue);
    return epilogue;
  }

  /*! Texts without these fields leave the choice to the library. Only convolutions are `windows`. */
  Execution ParseExecution(bool windows) const {
    Execution execution;
    if (Has("threads")) Positive("threads", execution.threads = Int("threads"));
    if (!Has("plan")) return execution;
    const std::string plan = Text("plan");
    if (plan == "plain") {
      execution.way = Way::kPlain;
    } else if (windows && plan == "direct") {
      execution.way = Way::kDirect;
    } else if (windows && plan == "winograd") {
      execution.way = Way::kWinograd;
    } else if (windows && plan == "tiles") {
      execution.way = Way::kTiles;
    } else {
      const std::string ways = windows ? "\"plain\", \"direct\", \"winograd\" or \"tiles\"" : "\"plain\"";
      Fail("plan", "must be " + ways + ", or be left out");
    }
    return execution;
  }

  /*! Texts without the field have channels first. */
  ImageLayout LayoutIfAny(const char* name) const {
    if (!Has(name)) return ImageLayout::kChannelsFirst;
    const std::string layout = Text(name);
    if (layout != "NCHW" && layout != "NHWC") Fail(name, "is \"" + layout + "\"\n  limit:  NCHW, NHWC");
    return layout == "NHWC" ? ImageLayout::kChannelsLast : ImageLayout::kChannelsFirst;
  }

  /*! Of a weight [n, k]; texts without "bits" have none. */
  Quantization ParseQuantization(int64_t k) const {
    Quantization out;
    if (!Has("bits")) return out;
    out.bits = Int("bits"), out.group = Int("group"), out.zero = Int("zero");
    out.offsets = Flag("offsets"), out.half = Flag("half");
    if (out.bits != 4 && out.bits != 8) Fail("bits", "is " + std::to_string(out.bits) + "\n  limit:  4 and 8");
    Positive("group", out.group);
    if (out.group % (32 / out.bits) != 0 || k % out.group != 0) {
      Fail("group", "is " + std::to_string(out.group) + " of " + std::to_string(k) +
                        " values\n  need:   a divisor of " + "them, and a multiple of " +
                        std::to_string(32 / out.bits));
    }
    if (Has("digits")) out.digits = Int("digits");
    if (out.digits != 1 && out.digits != 3) Fail("digits", "is " + std::to_string(out.digits) + "\n  limit:  1 and 3");
    if (out.zero < 0 || out.zero >> out.bits != 0)
      Fail("zero", "is " + std::to_string(out.zero) + ", which is no code");
    return out;
  }

  [[noreturn]] void Fail(const std::string& field, const std::string& why) const {
    TVM_FFI_THROW(ValueError) << "Library operator " << op_ << ": " << field << " " << why << ".";
    TVM_FFI_UNREACHABLE();
  }

 private:
  void AtLeast(int64_t least, const char* name, int64_t value) const {
    if (value < least) {
      Fail(name, "is " + std::to_string(value) + "\n  need:   at least " + std::to_string(least) +
                     "\n  remedy: " + (least > 0 ? "leave an empty operator out of the graph" : "correct the sizes"));
    }
  }

  bool Has(const char* name) const { return object_.find(tvm::ffi::String(name)) != object_.end(); }

  json::Value Get(const char* name) const {
    auto it = object_.find(tvm::ffi::String(name));
    if (it == object_.end()) Fail(name, "is missing from the attributes");
    return (*it).second;
  }

  int64_t ToInt(const json::Value& value, const char* name) const {
    if (value.as<bool>() && value.type_index() == tvm::ffi::TypeIndex::kTVMFFIBool) Fail(name, "must be an integer");
    auto number = value.as<int64_t>();
    if (!number) Fail(name, "must be an integer");
    return *number;
  }

  const char* op_;
  json::Object object_;
};

}  // namespace

MatmulAttrs MatmulAttrs::Parse(const std::string& text) {
  Fields fields("matmul", text);
  MatmulAttrs out;
  out.batch = fields.Ints("batch");
  if (out.batch.size() > 3) {
    fields.Fail("batch", "has " + std::to_string(out.batch.size()) +
                             " dimensions\n  limit:  3\n  remedy: merge "
                             "dimensions that follow each other in memory");
  }
  for (int64_t size : out.batch) fields.NotNegative("batch", size);
  out.m = fields.Int("m");
  out.n = fields.Int("n");
  out.k = fields.Int("k");
  fields.NotNegative("m", out.m);
  fields.NotNegative("n", out.n);
  fields.NotNegative("k", out.k);
  const size_t rank = out.batch.size() + 2;
  out.a = fields.View("a", rank);
  out.b = fields.View("b", rank);
  out.out = fields.View("out", rank);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = d < out.batch.size() ? out.batch[d] : d == out.batch.size() ? out.m : out.n;
    if (!out.empty() && size > 1 && out.out.strides[d] == 0)
      fields.Fail("out", "would write elements more than once (stride 0)");
  }
  out.epilogue = fields.ParseEpilogue();
  out.packed = fields.Flag("packed");
  if (out.packed && (out.k == 0 || out.n == 0)) fields.Fail("packed", "is of a weight without elements");
  fields.NotNegative("packed_for", out.packed_for = fields.IntIfAny("packed_for"));
  out.execution = fields.ParseExecution(false);
  out.weight = fields.ParseQuantization(out.k);
  return out;
}

int64_t MatmulAttrs::batch_count() const {
  int64_t count = 1;
  for (int64_t size : batch) count *= size;
  return count;
}

namespace {
Conv2dAttrs ReadConv2d(const Fields& fields) {
  Conv2dAttrs out;
  std::vector<int64_t> input = fields.Ints("input", 4), weight = fields.Ints("weight", 4);
  // Beyond this, sums with the padding would need more than 64 bits.
  constexpr int64_t kMost = int64_t{1} << 61;
  fields.NotNegative("input", input[0]);
  for (size_t d = 1; d < 4; ++d) fields.Positive("input", input[d]);
  if (*std::max_element(input.begin(), input.end()) > kMost) fields.Fail("input", "has a size beyond 2^61");
  for (int64_t size : weight) fields.Positive("weight", size);
  out.n = input[0], out.c = input[1], out.h = input[2], out.w = input[3];
  out.o = weight[0], out.i = weight[1], out.kh = weight[2], out.kw = weight[3];
  std::vector<int64_t> stride = fields.Ints("strides", 2), dilation = fields.Ints("dilation", 2);
  std::vector<int64_t> padding = fields.Ints("padding", 4);
  for (int d = 0; d < 2; ++d) {
    fields.Positive("strides", out.stride[d] = stride[d]);
    fields.Positive("dilation", out.dilation[d] = dilation[d]);
  }
  for (int d = 0; d < 4; ++d) {
    out.padding[d] = padding[d];
    if (padding[d] < 0) fields.Fail("padding", "is negative");
  }
  out.groups = fields.Int("groups");
  fields.Positive("groups", out.groups);
  if (out.i * out.groups != out.c || out.o % out.groups != 0) {
    fields.Fail("weight", "does not fit the input: " + std::to_string(out.groups) + " groups of " +
                              std::to_string(out.i) + " input channels, the input has " + std::to_string(out.c) +
                              "; output channels " + std::to_string(out.o));
  }
  out.oh = (out.h + out.padding[0] + out.padding[2] - (out.kh - 1) * out.dilation[0] - 1) / out.stride[0] + 1;
  out.ow = (out.w + out.padding[1] + out.padding[3] - (out.kw - 1) * out.dilation[1] - 1) / out.stride[1] + 1;
  if (out.h + out.padding[0] + out.padding[2] < (out.kh - 1) * out.dilation[0] + 1 ||
      out.w + out.padding[1] + out.padding[3] < (out.kw - 1) * out.dilation[1] + 1) {
    fields.Fail("weight",
                "is larger than the padded input\n  remedy: add "
                "padding or leave the operator out");
  }
  out.epilogue = fields.ParseEpilogue();
  out.packed = fields.Flag("packed");
  out.execution = fields.ParseExecution(true);
  out.input_layout = fields.LayoutIfAny("input_layout");
  out.output_layout = fields.LayoutIfAny("output_layout");
  return out;
}

/*! Why convolutions are no chain; empty where they are one. What has a window for each channel is not packed. */
std::string NoChain(const std::vector<Conv2dAttrs>& parts) {
  if (parts.size() < 2 || parts.size() > 3) return "are " + std::to_string(parts.size()) + "\n  need:   two or three";
  size_t by_channel = 0;
  for (size_t number = 0; number < parts.size(); ++number) {
    const Conv2dAttrs& part = parts[number];
    const bool is_last = number + 1 == parts.size();
    const std::string name = "have a number " + std::to_string(number) + " that ";
    if (part.input_layout != ImageLayout::kChannelsLast || part.output_layout != ImageLayout::kChannelsLast)
      return name + "has the channels first\n  need:   NHWC of both sides";
    if (part.epilogue.alpha != 1.0 || (part.epilogue.residual != Residual::kNone && !is_last))
      return name + "has a factor or, before the last, a residual";
    const Conv2dAttrs& next = parts[is_last ? number : number + 1];
    if (!is_last && std::tie(part.n, part.o, part.oh, part.ow) != std::tie(next.n, next.c, next.h, next.w))
      return name + "writes other images than the next one reads";
    const bool of_pixels = part.groups == 1 && part.kh * part.kw * part.stride[0] * part.stride[1] == 1 &&
                           part.oh == part.h && part.ow == part.w;
    if (part.packed && !of_pixels) return name + "has a packed weight, and windows or groups";
    if (!part.packed && (part.groups != part.c || part.o != part.c))
      return name + "has neither a packed weight nor a window for each channel";
    by_channel += !part.packed;
  }
  if (by_channel != 1) return "have " + std::to_string(by_channel) + " with a window for each channel\n  need:   one";
  if (parts.size() == 3 && parts[1].packed) return "begin or end with a window for each channel\n  need:   it between";
  return "";
}
}  // namespace

Conv2dAttrs Conv2dAttrs::Parse(const std::string& text) { return ReadConv2d(Fields("conv2d", text)); }

Conv2dChainAttrs Conv2dChainAttrs::Parse(const std::string& text) {
  constexpr const char* kOp = "conv2d_chain";
  const Fields fields(kOp, text);
  Conv2dChainAttrs out;
  for (const json::Object& part : fields.Objects("parts")) out.parts.push_back(ReadConv2d(Fields(kOp, part)));
  if (const std::string why = NoChain(out.parts); !why.empty()) {
    fields.Fail("parts", why + "\n  remedy: call them one by one");
  }
  while (out.windows().packed) ++out.by_channel;
  return out;
}

AttentionAttrs AttentionAttrs::Parse(const std::string& text) {
  Fields fields("attention", text);
  AttentionAttrs out;
  out.batch = fields.Ints("batch");
  for (int64_t size : out.batch) fields.NotNegative("batch", size);
  fields.NotNegative("m", out.m = fields.Int("m"));
  fields.NotNegative("n", out.n = fields.Int("n"));
  fields.NotNegative("d", out.d = fields.Int("d"));
  fields.NotNegative("e", out.e = fields.Int("e"));
  out.scale = fields.Number("scale");
  out.masked = fields.Flag("masked");
  out.safe = fields.Flag("safe");
  out.first = fields.MaybeInt("first");
  out.last = fields.MaybeInt("last");
  const size_t rank = out.batch.size() + 2;
  for (auto [name, view, columns] :
       {std::tuple{"query", &out.query, out.d}, std::tuple{"key", &out.key, out.d},
        std::tuple{"value", &out.value, out.e}, std::tuple{"mask", &out.mask, out.masked ? out.n : 0},
        std::tuple{"out", &out.out, out.e}}) {
    *view = fields.View(name, rank);
    if (columns > 1 && view->strides.back() != 1) {
      fields.Fail(name, "has the stride " + std::to_string(view->strides.back()) +
                            " along its rows\n  limit:  1\n  remedy: pass a copy that lies by rows");
    }
  }
  return out;
}

RecurrenceAttrs RecurrenceAttrs::Parse(const std::string& text) {
  Fields fields("recurrence", text);
  RecurrenceAttrs out;
  const std::string cell = fields.Text("cell");
  const std::array<const char*, 4> names = {"lstm", "gru", "rnn_tanh", "rnn_relu"};
  const auto found = std::find(names.begin(), names.end(), cell);
  if (found == names.end()) fields.Fail("cell", "is \"" + cell + "\"\n  limit:  lstm, gru, rnn_tanh, rnn_relu");
  out.cell = static_cast<Cell>(found - names.begin());
  fields.NotNegative("steps", out.steps = fields.Int("steps"));
  fields.NotNegative("batch", out.batch = fields.Int("batch"));
  fields.Positive("hidden", out.hidden = fields.Int("hidden"));
  out.reverse = fields.Flag("reverse");
  out.weight = fields.View("weight", 2);
  out.packed = fields.Flag("packed");
  return out;
}

IntegerAttrs IntegerAttrs::Parse(const std::string& text) {
  Fields fields("integer_product", text);
  IntegerAttrs out;
  const std::vector<int64_t> image = fields.Ints("image", 4), weight = fields.Ints("weight", 3);
  const std::vector<int64_t> stride = fields.Ints("strides", 2), dilation = fields.Ints("dilation", 2);
  const std::vector<int64_t> padding = fields.Ints("padding", 4);
  constexpr int64_t kMost = int64_t{1} << 31;  // of a size: sums of products of two fit into 64 bits
  fields.NotNegative("image", image[0]);
  for (size_t d = 1; d < 4; ++d) fields.Positive("image", image[d]);
  for (int64_t size : weight) fields.Positive("weight", size);
  for (int64_t size : padding) fields.NotNegative("padding", size);
  for (int d = 0; d < 2; ++d) {
    fields.Positive("strides", out.stride[d] = stride[d]);
    fields.Positive("dilation", out.dilation[d] = dilation[d]);
  }
  for (const std::vector<int64_t>& sizes : {image, weight, stride, dilation, padding}) {
    for (int64_t size : sizes) {
      if (size >= kMost) fields.Fail("image", "or another field has a size of 2^31 and more");
    }
  }
  std::copy(padding.begin(), padding.end(), out.padding);
  out.n = image[0], out.h = image[1], out.w = image[2], out.c = image[3];
  out.o = weight[0], out.kh = weight[1], out.kw = weight[2];
  const int64_t high = out.h + padding[0] + padding[2] - (out.kh - 1) * out.dilation[0] - 1;
  const int64_t wide = out.w + padding[1] + padding[3] - (out.kw - 1) * out.dilation[1] - 1;
  if (high < 0 || wide < 0) fields.Fail("weight", "is larger than the padded image\n  remedy: add padding");
  out.oh = high / out.stride[0] + 1, out.ow = wide / out.stride[1] + 1;
  out.zero = fields.Int("zero"), out.out_zero = fields.Int("out_zero");
  for (auto [name, zero] : {std::pair{"zero", out.zero}, std::pair{"out_zero", out.out_zero}}) {
    if (zero < -128 || zero > 255) fields.Fail(name, "is " + std::to_string(zero) + "\n  limit:  -128 to 255");
  }
  out.wide = fields.Flag("wide");
  return out;
}

IntegerMatmulAttrs IntegerMatmulAttrs::Parse(const std::string& text) {
  constexpr int64_t kMost = (int64_t{1} << 17) - 1;  // products of 2^14 that 32 bits hold the sum of
  Fields fields("integer_matmul", text);
  IntegerMatmulAttrs out;
  fields.NotNegative("m", out.m = fields.Int("m"));
  fields.Positive("n", out.n = fields.Int("n"));
  fields.Positive("k", out.k = fields.Int("k"));
  if (out.k > kMost) fields.Fail("k", "is " + std::to_string(out.k) + "\n  limit:  " + std::to_string(kMost));
  fields.Positive("parts", out.parts = fields.Int("parts"));
  return out;
}

SortAttrs SortAttrs::Parse(const std::string& text) {
  constexpr int64_t kMost = (int64_t{1} << 32) - 1;  // places take half of an entry
  Fields fields("sort", text);
  SortAttrs out;
  for (auto [name, size] : {std::pair{"outer", &out.outer}, std::pair{"length", &out.length},
                            std::pair{"inner", &out.inner}, std::pair{"count", &out.count}}) {
    fields.NotNegative(name, *size = fields.Int(name));
  }
  if (out.length > kMost) fields.Fail("length", "is " + std::to_string(out.length) + "\n  limit:  2^32 - 1");
  if (out.count > out.length) {
    fields.Fail("count", "is " + std::to_string(out.count) + "\n  limit:  the length, " + std::to_string(out.length));
  }
  out.descending = fields.Flag("descending");
  out.values = fields.Flag("values"), out.indices = fields.Flag("indices");
  if (!out.values && !out.indices) fields.Fail("values", "and indices are false\n  need:   a result");
  return out;
}

}  // namespace uir::library
