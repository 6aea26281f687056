// SPDX-License-Identifier: Apache-2.0
#include "library/packed_weight.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <sstream>
#include <tuple>

#include "base/large_pages.h"
#include "base/rounding.h"

namespace uir::library {
namespace {

constexpr char kMagic[8] = {'U', 'I', 'R', 'W', 'G', 'H', 'T', '\0'};
constexpr uint32_t kFormatVersion = 1;
constexpr int64_t kAlignment = 64;
/*! Bytes of converted weights that are kept; beyond it the oldest go and are
 * converted again when needed. */
constexpr int64_t kConvertedBytes = int64_t{4} << 30;

struct Header {
  char magic[8];
  uint32_t version;
  int32_t dtype;
  int32_t ndims, panel_dim;
  int64_t dims[kLayoutDims];
  uint64_t content[2];
  uint64_t fingerprint[2];
  int64_t panels, body_offset, body_bytes;
  char library[24];
  char isa[40];
};

/*! Two 64-bit hashes of a byte string, of different multipliers. */
class Hash {
 public:
  void Add(const void* data, size_t bytes) {
    const char* p = static_cast<const char*>(data);
    for (; bytes >= 8; p += 8, bytes -= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      Word(word);
    }
    uint64_t word = bytes;
    std::memcpy(reinterpret_cast<char*>(&word) + 1, p, std::min<size_t>(bytes, 7));
    Word(word);
  }
  std::pair<uint64_t, uint64_t> value() const { return {first_, second_}; }

 private:
  void Word(uint64_t word) {
    first_ = Mix(first_ ^ word) * 0x9e3779b97f4a7c15u;
    second_ = Mix(second_ + word * 0xd6e8feb86659fd93u) ^ (second_ << 7);
  }
  static uint64_t Mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xff51afd7ed558ccdu;
    return x ^ (x >> 29);
  }
  uint64_t first_ = 0x243f6a8885a308d3u, second_ = 0x13198a2e03707344u;
};

/*! What index i of dimension d adds to the element offset: layouts are
 * separable by dimension. */
std::vector<int64_t> OffsetTable(const BlockedLayout& layout, int d) {
  std::vector<int64_t> table(layout.dims[d]);
  for (int64_t i = 0; i < layout.dims[d]; ++i) {
    int64_t rest = i, offset = 0, unit = 1;
    for (int b = layout.blocks - 1; b >= 0; --b) {
      if (layout.block_dim[b] == d) {
        offset += rest % layout.block_size[b] * unit;
        rest /= layout.block_size[b];
      }
      unit *= layout.block_size[b];
    }
    table[i] = offset + rest * layout.strides[d];
  }
  return table;
}

/*! Whether elements that differ in the last dimension alone lie side by side. */
bool IsRun(const std::vector<int64_t>& table) {
  for (size_t i = 1; i < table.size(); ++i) {
    if (table[i] != table[i - 1] + 1) return false;
  }
  return !table.empty();
}

/*! From dimension d on; `runs`: those of the last one lie side by side on both sides. */
template <typename T>
void CopyElements(const T* from, T* to, const std::vector<std::vector<int64_t>>& source,
                  const std::vector<std::vector<int64_t>>& target, bool runs, size_t d = 0, int64_t from_at = 0,
                  int64_t to_at = 0) {
  const size_t last = source.size() - 1;
  if (d == last && runs) {
    std::copy_n(from + from_at + source[d][0], source[d].size(), to + to_at + target[d][0]);
    return;
  }
  for (size_t i = 0; i < source[d].size(); ++i) {
    const int64_t f = from_at + source[d][i], t = to_at + target[d][i];
    if (d == last) {
      to[t] = from[f];
    } else {
      CopyElements(from, to, source, target, runs, d + 1, f, t);
    }
  }
}

/*! Layout of a panel inside the contiguous whole weight; `at` is the byte where
 * it starts. */
BlockedLayout PanelInWhole(const WeightFormat& format, const Panel& panel, int64_t* at) {
  const size_t element = SizeOf(format.dtype);
  std::vector<int64_t> dims = format.dims;
  std::copy(panel.layout.dims, panel.layout.dims + dims.size(), dims.begin());  // after its transform
  dims[format.panel_dim] = format.dims[format.panel_dim];
  BlockedLayout layout = BlockedLayout::Contiguous(dims, element);
  *at = panel.begin * layout.strides[format.panel_dim] * static_cast<int64_t>(element);
  layout.dims[format.panel_dim] = panel.size;
  return layout;
}

[[noreturn]] void Corrupt(const char* why) {
  TVM_FFI_THROW(ValueError) << "A packed weight cannot be used: " << why
                            << ".\n  need:   a tensor made by uir.library.cpu.pack_weight, "
                               "unchanged, format version "
                            << kFormatVersion << "\n  remedy: compile the model again.";
  TVM_FFI_UNREACHABLE();
}

const Header* HeaderOf(const DLTensor* blob) {
  if (blob->ndim != 1 || blob->dtype.code != kDLUInt || blob->dtype.bits != 8) Corrupt("it is not a vector of bytes");
  if (blob->shape[0] < static_cast<int64_t>(sizeof(Header))) Corrupt("it is too short");
  const auto* header = reinterpret_cast<const Header*>(static_cast<const char*>(blob->data) + blob->byte_offset);
  if (std::memcmp(header->magic, kMagic, sizeof(kMagic)) != 0) Corrupt("it does not start as one");
  if (header->version != kFormatVersion) Corrupt("it has another format version");
  if (header->body_offset < static_cast<int64_t>(sizeof(Header)) || header->body_bytes < 0 || header->panels < 1 ||
      header->body_offset > blob->shape[0] || blob->shape[0] - header->body_offset != header->body_bytes ||
      header->panels >
          (header->body_offset - static_cast<int64_t>(sizeof(Header))) / static_cast<int64_t>(sizeof(Panel))) {
    Corrupt("its sizes do not add up");
  }
  return header;
}

const char* BodyOf(const Header* header) { return reinterpret_cast<const char*>(header) + header->body_offset; }

int64_t LastOffset(const BlockedLayout& layout) {
  int64_t last = 0;
  for (int d = 0; d < layout.ndims; ++d) {
    std::vector<int64_t> table = OffsetTable(layout, d);
    last += *std::max_element(table.begin(), table.end());
  }
  return last;
}

/*! The format written in the blob, checked so far that reading by it stays
 * inside. */
WeightFormat FormatOf(const Header* header) {
  WeightFormat format;
  if (header->ndims < 1 || header->ndims > kLayoutDims || header->panel_dim < 0 || header->panel_dim >= header->ndims ||
      header->dtype < 0 || header->dtype > static_cast<int>(DType::kF64)) {
    Corrupt("its header is damaged");
  }
  format.dtype = static_cast<DType>(header->dtype);
  format.dims.assign(header->dims, header->dims + header->ndims);
  format.panel_dim = header->panel_dim;
  format.bytes = header->body_bytes;
  const auto* panels = reinterpret_cast<const Panel*>(header + 1);
  format.panels.assign(panels, panels + header->panels);
  auto [first, second] = format.Fingerprint();
  if (first != header->fingerprint[0] || second != header->fingerprint[1]) Corrupt("its table of panels is damaged");
  for (const Panel& panel : format.panels) {
    if (panel.offset < 0 || panel.layout.ndims != header->ndims ||
        panel.offset + (LastOffset(panel.layout) + 1) * static_cast<int64_t>(SizeOf(format.dtype)) > format.bytes) {
      Corrupt("a panel lies outside of it");
    }
  }
  return format;
}

/*! Whether a blob holds a weight of a format's type and dimensions; its panels may be others. */
bool IsOf(const WeightFormat& format, const Header& header) {
  return header.dtype == static_cast<int32_t>(format.dtype) &&
         header.ndims == static_cast<int32_t>(format.dims.size()) &&
         std::equal(format.dims.begin(), format.dims.end(), header.dims);
}

void Unpack(const char* body, const WeightFormat& format, char* plain) {
  for (const Panel& panel : format.panels) {
    int64_t at = 0;
    const BlockedLayout whole = PanelInWhole(format, panel, &at);
    CopyLayout(body + panel.offset, panel.layout, plain + at, whole, SizeOf(format.dtype));
  }
}

void Pack(const char* plain, const WeightFormat& format, char* body) {
  std::memset(body, 0,
              format.bytes);  // padding of blocks takes part in the library's sums
  std::vector<float> windows;
  if (format.transform == WeightTransform::kWinograd) {
    windows = WinogradWindows(reinterpret_cast<const float*>(plain), format.dims[0] * format.dims[1]);
    plain = reinterpret_cast<const char*>(windows.data());
  }
  for (const Panel& panel : format.panels) {
    int64_t at = 0;
    const BlockedLayout whole = PanelInWhole(format, panel, &at);
    CopyLayout(plain + at, whole, body + panel.offset, panel.layout, SizeOf(format.dtype));
  }
}

int64_t PlainBytes(const WeightFormat& format) {
  int64_t bytes = SizeOf(format.dtype);
  for (int64_t dim : format.dims) bytes *= dim;
  return bytes;
}

/*! Converted weights, most recently used first. */
class ConvertedWeights {
 public:
  using Key = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;

  template <typename Make>
  std::shared_ptr<AlignedBuffer> Find(const Key& key, int64_t bytes, Make make) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
    if (it != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, it);
      return it->buffer;
    }
    Entry entry{key, bytes, make()};
    entries_.push_front(entry);
    held_ += bytes;
    while (held_ > kConvertedBytes && entries_.size() > 1) {
      held_ -= entries_.back().bytes;
      entries_.pop_back();
    }
    return entry.buffer;
  }

  int64_t held() {
    std::lock_guard<std::mutex> lock(mutex_);
    return held_;
  }

  static ConvertedWeights* Global() {
    static ConvertedWeights* cache = new ConvertedWeights();
    return cache;
  }

 private:
  struct Entry {
    Key key;
    int64_t bytes;
    std::shared_ptr<AlignedBuffer> buffer;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;
  int64_t held_ = 0;
};

//! Packed weights of this process that somebody holds, by all that their headers say: contents, format, library. Nobody
//! changes them.
class LiveWeights {
 public:
  /*! Null where there is none. */
  tvm::ffi::ObjectPtr<tvm::ffi::TensorObj> Find(const std::string& header) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = weights_.find(header);
    return found == weights_.end() ? nullptr : found->second.lock();
  }

  void Add(const std::string& header, const tvm::ffi::Tensor& blob) {
    using tvm::ffi::details::ObjectUnsafe;
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = weights_.begin(); it != weights_.end();) it = it->second.expired() ? weights_.erase(it) : ++it;
    weights_[header] = ObjectUnsafe::ObjectPtrFromObjectRef<tvm::ffi::TensorObj>(blob);
  }

  static LiveWeights* Global() {
    static LiveWeights* weights = new LiveWeights();
    return weights;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, tvm::ffi::WeakObjectPtr<tvm::ffi::TensorObj>> weights_;
};

struct AlignedAllocator {
  void AllocData(DLTensor* tensor) { tensor->data = AlignedBlock(kAlignment, RoundUp(tensor->shape[0], kAlignment)); }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

}  // namespace

BlockedLayout BlockedLayout::Contiguous(const std::vector<int64_t>& dims, size_t element_size) {
  BlockedLayout layout;
  layout.ndims = static_cast<int32_t>(dims.size());
  int64_t stride = 1;
  for (int d = layout.ndims - 1; d >= 0; --d) {
    layout.dims[d] = dims[d];
    layout.strides[d] = stride;
    stride *= dims[d];
  }
  layout.bytes = stride * static_cast<int64_t>(element_size);
  return layout;
}

bool BlockedLayout::Describe(const dnn::MdTag* md, BlockedLayout* out) {
  const dnn::Api& api = dnn::Loaded();
  int kind = 0, ndims = 0, blocks = 0;
  dnn::Dims *dims = nullptr, *strides = nullptr, *sizes = nullptr, *indices = nullptr;
  api.memory_desc_query(md, dnn::kQueryFormatKind, &kind);
  api.memory_desc_query(md, dnn::kQueryNdims, &ndims);
  if (kind != dnn::kFormatBlocked || ndims > kLayoutDims) return false;
  api.memory_desc_query(md, dnn::kQueryInnerBlockCount, &blocks);
  if (blocks > kLayoutBlocks) return false;
  api.memory_desc_query(md, dnn::kQueryDims, &dims);
  api.memory_desc_query(md, dnn::kQueryStrides, &strides);
  *out = BlockedLayout();
  out->ndims = ndims;
  out->blocks = blocks;
  out->bytes = static_cast<int64_t>(api.memory_desc_get_size(md));
  std::copy(*dims, *dims + ndims, out->dims);
  std::copy(*strides, *strides + ndims, out->strides);
  if (blocks > 0) {
    api.memory_desc_query(md, dnn::kQueryInnerBlocks, &sizes);
    api.memory_desc_query(md, dnn::kQueryInnerIndices, &indices);
    std::copy(*sizes, *sizes + blocks, out->block_size);
    std::copy(*indices, *indices + blocks, out->block_dim);
  }
  return true;
}

void CopyLayout(const char* from, const BlockedLayout& from_layout, char* to, const BlockedLayout& to_layout,
                size_t element_size) {
  std::vector<std::vector<int64_t>> source, target;
  for (int d = 0; d < from_layout.ndims; ++d) {
    source.push_back(OffsetTable(from_layout, d));
    target.push_back(OffsetTable(to_layout, d));
  }
  const bool runs = IsRun(source.back()) && IsRun(target.back());
  if (element_size == 2) {
    CopyElements(reinterpret_cast<const uint16_t*>(from), reinterpret_cast<uint16_t*>(to), source, target, runs);
  } else if (element_size == 4) {
    CopyElements(reinterpret_cast<const uint32_t*>(from), reinterpret_cast<uint32_t*>(to), source, target, runs);
  } else {
    CopyElements(reinterpret_cast<const uint64_t*>(from), reinterpret_cast<uint64_t*>(to), source, target, runs);
  }
}

void WeightFormat::Add(int64_t begin, int64_t size, const BlockedLayout& layout) {
  Panel panel;
  panel.begin = begin;
  panel.size = size;
  panel.offset = bytes;
  panel.layout = layout;
  panels.push_back(panel);
  bytes = RoundUp(bytes + layout.bytes, kAlignment);
}

WeightFormat WeightFormat::Plain(DType dtype, std::vector<int64_t> dims, int panel_dim) {
  WeightFormat format;
  format.dtype = dtype;
  format.panel_dim = panel_dim;
  format.dims = std::move(dims);
  format.Add(0, format.dims[panel_dim], BlockedLayout::Contiguous(format.dims, SizeOf(dtype)));
  return format;
}

WeightFormat WeightFormat::Stored() const {
  return transform == WeightTransform::kNone ? *this : Plain(dtype, dims, panel_dim);
}

std::pair<uint64_t, uint64_t> WeightFormat::Fingerprint() const {
  Hash hash;
  if (transform != WeightTransform::kNone) hash.Add(&transform, sizeof(transform));
  const int64_t fixed[] = {static_cast<int64_t>(dtype), panel_dim, bytes};
  hash.Add(fixed, sizeof(fixed));
  hash.Add(dims.data(), dims.size() * sizeof(int64_t));
  hash.Add(panels.data(), panels.size() * sizeof(Panel));
  return hash.value();
}

tvm::ffi::Tensor PackWeight(const char* plain, const WeightFormat& wanted) {
  const WeightFormat format = wanted.Stored();
  Header header;
  std::memset(&header, 0, sizeof(header));
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kFormatVersion;
  header.dtype = static_cast<int32_t>(format.dtype);
  header.ndims = static_cast<int32_t>(format.dims.size());
  header.panel_dim = format.panel_dim;
  std::copy(format.dims.begin(), format.dims.end(), header.dims);
  Hash content;
  content.Add(plain, PlainBytes(format));
  std::tie(header.content[0], header.content[1]) = content.value();
  std::tie(header.fingerprint[0], header.fingerprint[1]) = format.Fingerprint();
  header.panels = static_cast<int64_t>(format.panels.size());
  header.body_offset = RoundUp(sizeof(Header) + sizeof(Panel) * header.panels, kAlignment);
  header.body_bytes = format.bytes;
  const dnn::Api* api = dnn::Get();
  std::strncpy(header.library, api ? api->version_text.c_str() : "none", sizeof(header.library) - 1);
  std::strncpy(header.isa, api ? api->isa.c_str() : "any", sizeof(header.isa) - 1);

  const std::string key(reinterpret_cast<const char*>(&header), sizeof(header));
  if (auto live = LiveWeights::Global()->Find(key)) return tvm::ffi::Tensor(std::move(live));

  const int64_t size = header.body_offset + header.body_bytes;
  tvm::ffi::Tensor blob = tvm::ffi::Tensor::FromNDAlloc(AlignedAllocator(), tvm::ffi::ShapeView(&size, 1),
                                                        DLDataType{kDLUInt, 8, 1}, DLDevice{kDLCPU, 0});
  char* data = static_cast<char*>(blob.data_ptr());
  std::memset(data, 0, header.body_offset);
  std::memcpy(data, &header, sizeof(header));
  std::memcpy(data + sizeof(header), format.panels.data(), sizeof(Panel) * format.panels.size());
  Pack(plain, format, data + header.body_offset);
  LiveWeights::Global()->Add(key, blob);
  return blob;
}

void UnpackWeight(const DLTensor* blob, std::vector<char>* plain, WeightFormat* format) {
  const Header* header = HeaderOf(blob);
  *format = FormatOf(header);
  plain->resize(PlainBytes(*format));
  Unpack(BodyOf(header), *format, plain->data());
}

ResolvedWeight ResolveWeight(const DLTensor* blob, const WeightFormat& wanted,
                             const std::pair<uint64_t, uint64_t>& wanted_fingerprint) {
  const Header* header = HeaderOf(blob);
  const auto [first, second] = wanted_fingerprint;
  if (header->fingerprint[0] == first && header->fingerprint[1] == second && header->body_bytes == wanted.bytes) {
    return {BodyOf(header), nullptr};
  }
  if (!IsOf(wanted, *header)) {
    Corrupt(
        "it was packed from a weight of another shape or type than this "
        "operator's");
  }
  const ConvertedWeights::Key key{header->content[0], header->content[1], first, second};
  std::shared_ptr<AlignedBuffer> buffer = ConvertedWeights::Global()->Find(key, wanted.bytes, [&] {
    const WeightFormat found = FormatOf(header);
    std::vector<char> plain(PlainBytes(found));
    Unpack(BodyOf(header), found, plain.data());
    auto made = std::make_shared<AlignedBuffer>(wanted.bytes);
    Pack(plain.data(), wanted, made->data());
    return made;
  });
  return {buffer->data(), buffer};
}

int64_t ConvertedBytes() { return ConvertedWeights::Global()->held(); }

std::string DescribeBlob(const DLTensor* blob) {
  const Header* header = HeaderOf(blob);
  const WeightFormat format = FormatOf(header);
  std::ostringstream text;
  text << "{\"version\": " << header->version << ", \"library\": \"" << std::string(header->library)
       << "\", \"isa\": \"" << std::string(header->isa) << "\", \"panels\": " << format.panels.size()
       << ", \"blocks\": " << format.panels[0].layout.blocks << ", \"bytes\": " << format.bytes << "}";
  return text.str();
}

}  // namespace uir::library
