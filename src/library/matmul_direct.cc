// SPDX-License-Identifier: Apache-2.0
// Matrix products on oneDNN, run where the operands lie, cut over TVM's thread
// pool.

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <sstream>

#include "library/matmul.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

//! Width of a panel of a packed weight: a multiple of every block the library
//! uses (16 to 64), wide enough that reading A again for each panel does not
//! show, narrow enough that the panels of a 384-wide layer keep two threads
//! busy.
constexpr int64_t kPanel = 192;
/*! Borders of unpacked pieces: whole register tiles of the library's code. */
constexpr int64_t kGranuleM = 16, kGranuleN = 48;

bool SharedWeight(const MatmulAttrs& attrs) {
  return std::all_of(attrs.b.strides.begin(), attrs.b.strides.end() - 2, [](int64_t s) { return s == 0; });
}

class DirectMatmul final : public MatmulPlan {
 public:
  DirectMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads, Threading threading)
      : attrs_(Collapse(attrs.packed ? WithPackedWeight(attrs, types.b) : attrs)),
        types_(types),
        threading_(threading) {
    rank_ = static_cast<int>(attrs_.batch.size()) + 2;
    if (attrs_.packed) ChooseFormat();
    split_dim_ = static_cast<int>(std::max_element(attrs_.batch.begin(), attrs_.batch.end()) - attrs_.batch.begin());
    if (threading == Threading::kOpenMP) threads = 1;
    usable_ = Build(threads, true) || (panelled() && Build(threads, false));
  }

  bool usable() const { return usable_; }

  void Run(const MatmulData& data) const final {
    auto body = [&](int task) {
      for (const Step& step : tasks_[task]) RunStep(step, data);
    };
    if (threading_ == Threading::kOpenMP) {
      body(0);
    } else {
      ParallelRun(static_cast<int>(tasks_.size()), body);
    }
  }

  const WeightFormat* weight_format() const final { return attrs_.packed ? &format_ : nullptr; }

  std::string Describe() const final {
    std::ostringstream text;
    text << "{\"plan\": \"direct\", \"implementation\": \"" << tasks_[0][0].kernel->implementation()
         << "\", \"parts\": [" << split_.parts[0] << ", " << split_.parts[1] << ", " << split_.parts[2]
         << "], \"panels\": " << format_.panels.size() << "}";
    return text.str();
  }

 private:
  struct Step {
    const Kernel* kernel;
    int64_t a, b, out, bias;  // byte offsets
  };

  bool panelled() const {
    return format_.panels.size() > 1 || (!format_.panels.empty() && format_.panels[0].layout.blocks > 0);
  }

  /*! Dimensions of b as the primitive sees it, leading ones where the batch
   * shares it. */
  std::vector<int64_t> WeightDims(int64_t n) const {
    std::vector<int64_t> dims(rank_, 1);
    dims[rank_ - 2] = attrs_.k;
    dims[rank_ - 1] = n;
    return dims;
  }

  //! What the library chooses the layout of a panel with. The rows for which a weight was packed stand for all, with
  //! operands that lie as they best do, so that the weight's layout is the same for every m. Else at least two rows: of
  //! one row oneDNN does not tell a panel from a whole result, and takes for it what it once chose for the other.
  std::unique_ptr<Kernel> MakeFormatKernel(int64_t n) const {
    const dnn::OwnedMd weight = AnyWeight(n);
    const int64_t rows = attrs_.packed_for;
    if (rows == 0) return MakeKernel(attrs_.batch, std::max<int64_t>(attrs_.m, 2), n, weight.get());
    OperandView a{0, std::vector<int64_t>(rank_, rows * attrs_.k)},
        out{0, std::vector<int64_t>(rank_, rows * attrs_.n)};
    a.strides[rank_ - 2] = attrs_.k, out.strides[rank_ - 2] = attrs_.n;
    a.strides[rank_ - 1] = out.strides[rank_ - 1] = 1;
    return MakeMatmulKernel(std::vector<int64_t>(rank_ - 2, 1), rows, n, attrs_.k, types_, a, weight.get(), out,
                            attrs_.epilogue);
  }

  /*! Ask the library for the layout of one panel; blocked: cut the weight into
   * panels, plain: one contiguous panel. */
  void ChooseFormat() {
    format_ = WeightFormat();
    format_.dtype = types_.b;
    format_.dims = {attrs_.k, attrs_.n};
    format_.panel_dim = 1;
    for (int64_t begin = 0; begin < attrs_.n; begin += kPanel) {
      const int64_t size = std::min(kPanel, attrs_.n - begin);
      std::unique_ptr<Kernel>& kernel = panel_kernels_[size];
      if (!kernel) kernel = MakeFormatKernel(size);
      BlockedLayout layout;
      if (!kernel || kernel->IsReference() || !DescribePanel(*kernel, &layout) || layout.blocks == 0) {
        panel_kernels_.clear();
        format_ = PlainMatmulFormat(attrs_, types_.b);
        return;
      }
      format_.Add(begin, size, layout);
    }
  }

  dnn::OwnedMd AnyWeight(int64_t n) const { return dnn::AnyMd(rank_, WeightDims(n).data(), LibraryType(types_.b)); }

  /*! The kernel's weight layout without the leading dimensions of one element.
   */
  bool DescribePanel(const Kernel& kernel, BlockedLayout* out) const {
    BlockedLayout full;
    if (!BlockedLayout::Describe(kernel.layout(dnn::kQueryWeights), &full)) return false;
    const int lead = rank_ - 2;
    *out = full;
    out->ndims = 2;
    for (int d = 0; d < kLayoutDims; ++d) {
      out->dims[d] = d < 2 ? full.dims[lead + d] : 0;
      out->strides[d] = d < 2 ? full.strides[lead + d] : 0;
    }
    for (int b = 0; b < full.blocks; ++b) {
      out->block_dim[b] = full.block_dim[b] - lead;
      if (out->block_dim[b] < 0) return false;
    }
    return true;
  }

  std::unique_ptr<Kernel> MakeKernel(const std::vector<int64_t>& batch, int64_t m, int64_t n,
                                     const dnn::MdTag* b) const {
    return MakeMatmulKernel(batch, m, n, attrs_.k, types_, attrs_.a, b, attrs_.out, attrs_.epilogue);
  }

  const Kernel* KernelFor(int64_t batch, int64_t m, int64_t n) {
    std::unique_ptr<Kernel>& kernel = kernels_[{batch, m, n}];
    if (kernel) return kernel.get();
    std::vector<int64_t> sizes = attrs_.batch;
    if (!sizes.empty()) sizes[split_dim_] = batch;
    if (panelled()) {
      kernel = MakeKernel(sizes, m, n, panel_kernels_.at(n)->layout(dnn::kQueryWeights));
    } else {
      std::vector<int64_t> dims = WeightDims(n);
      for (int d = 0; d < rank_ - 2; ++d) dims[d] = SharedWeight(attrs_) ? 1 : sizes[d];
      // A batch dimension that b alone lacks has stride 0; the library wants it
      // as a dimension of one element.
      for (int d = 0; d < rank_ - 2; ++d) {
        if (attrs_.b.strides[d] == 0) dims[d] = 1;
      }
      std::vector<int64_t> strides = attrs_.b.strides;
      for (int d = 0; d < rank_ - 2; ++d) {
        if (strides[d] == 0) strides[d] = attrs_.k * attrs_.n;
      }
      dnn::OwnedMd md = dnn::StridedMd(rank_, dims.data(), LibraryType(types_.b), strides.data());
      kernel = MakeKernel(sizes, m, n, md.get());
    }
    return kernel.get();
  }

  /*! Cut the work and make the kernels; false where one of them would be the
   * library's reference code. */
  bool Build(int threads, bool cut_rows) {
    tasks_.clear();
    kernels_.clear();
    const bool batched = !attrs_.batch.empty();
    const int64_t split_size = batched ? attrs_.batch[split_dim_] : 1;
    double others = 1;
    for (size_t d = 0; d < attrs_.batch.size(); ++d) others *= static_cast<int>(d) == split_dim_ ? 1 : attrs_.batch[d];
    // Reading (and, in the library, packing) an element of A or B costs about
    // as much as eight multiply-adds.
    auto cost = [&](const std::array<int64_t, 3>& size) {
      const double batch = static_cast<double>(size[0]) * others, m = static_cast<double>(size[1]);
      const double n = static_cast<double>(size[2]), k = static_cast<double>(attrs_.k);
      return batch * (m * n * k + 8 * (m * k + k * n) + 4 * m * n);
    };
    const SplitDim rows{attrs_.m, cut_rows ? kGranuleM : attrs_.m};
    split_ = ChooseSplit({SplitDim{split_size, 1}, rows, SplitDim{attrs_.n, panelled() ? kPanel : kGranuleN}}, threads,
                         cost);
    for (int task = 0; task < split_.count(); ++task) {
      const std::array<int, 3> part = split_[task];
      const Range batch = Part(split_size, 1, split_.parts[0], part[0]);
      const Range m = Part(rows.size, rows.granule, split_.parts[1], part[1]);
      const Range n = Part(attrs_.n, panelled() ? kPanel : kGranuleN, split_.parts[2], part[2]);
      if (batch.size <= 0 || m.size <= 0 || n.size <= 0) continue;
      tasks_.emplace_back();
      if (!AddSteps(batch, m, n, &tasks_.back())) return false;
    }
    return true;
  }

  bool AddSteps(const Range& batch, const Range& m, const Range& n, std::vector<Step>* steps) {
    const int64_t a_size = SizeOf(types_.a), b_size = SizeOf(types_.b), out_size = SizeOf(types_.out);
    auto view = [&](const OperandView& v) { return v.offset + (rank_ > 2 ? v.strides[split_dim_] * batch.begin : 0); };
    auto add = [&](const Range& columns, int64_t b_at) {
      const Kernel* kernel = KernelFor(batch.size, m.size, columns.size);
      if (!kernel || kernel->IsReference()) return false;
      Step step;
      step.kernel = kernel;
      step.a = (view(attrs_.a) + m.begin * attrs_.a.strides[rank_ - 2]) * a_size;
      step.b = b_at;
      step.out =
          (view(attrs_.out) + m.begin * attrs_.out.strides[rank_ - 2] + columns.begin * attrs_.out.strides[rank_ - 1]) *
          out_size;
      step.bias = columns.begin * out_size;
      steps->push_back(step);
      return true;
    };
    if (!panelled()) return add(n, (view(attrs_.b) + n.begin * attrs_.b.strides[rank_ - 1]) * b_size);
    for (const Panel& panel : format_.panels) {
      if (panel.begin < n.begin || panel.begin >= n.begin + n.size) continue;
      if (!add({panel.begin, panel.size}, panel.offset)) return false;
    }
    return true;
  }

  void RunStep(const Step& step, const MatmulData& data) const {
    void* operands[5] = {const_cast<char*>(data.a + step.a), const_cast<char*>(data.b + step.b), data.out + step.out};
    int count = 3;
    if (attrs_.epilogue.bias) operands[count++] = const_cast<char*>(data.bias + step.bias);
    if (attrs_.epilogue.residual != Residual::kNone) operands[count++] = const_cast<char*>(data.residual + step.out);
    step.kernel->Run(operands);
  }

  MatmulAttrs attrs_;
  MatmulTypes types_;
  Threading threading_;
  int rank_ = 2, split_dim_ = 0;
  bool usable_ = false;
  WeightFormat format_;
  std::map<int64_t, std::unique_ptr<Kernel>> panel_kernels_;
  std::map<std::array<int64_t, 3>, std::unique_ptr<Kernel>> kernels_;
  Split split_;
  std::vector<std::vector<Step>> tasks_;
};

/*! Null where only the library's reference code would serve. */
std::unique_ptr<MatmulPlan> MakeWithFormat(const MatmulAttrs& attrs, const MatmulTypes& types, int threads,
                                           Threading threading) {
  if (!dnn::Get() || types.a == DType::kF64 || types.b == DType::kF64 || types.out == DType::kF64) return nullptr;
  std::unique_ptr<DirectMatmul> plan;
  if (threading == Threading::kPool) {
    // Primitives are made for the number of threads that they will run on.
    dnn::SingleThread single;
    plan = std::make_unique<DirectMatmul>(attrs, types, threads, threading);
  } else {
    plan = std::make_unique<DirectMatmul>(attrs, types, threads, threading);
  }
  return plan->usable() ? std::unique_ptr<MatmulPlan>(std::move(plan)) : nullptr;
}

//! A result of one column, for which the library has its reference code alone, as the row that it is of the transposed
//! product: the operands change places.
class OneColumn final : public MatmulPlan {
 public:
  OneColumn(const MatmulAttrs& attrs, const MatmulTypes& types, std::unique_ptr<MatmulPlan> row)
      : packed_(attrs.packed),
        bias_(attrs.epilogue.bias),
        rows_(attrs.m),
        row_(std::move(row)),
        item_(SizeOf(types.out)) {
    if (packed_) format_ = PlainMatmulFormat(attrs, types.b);
  }

  void Run(const MatmulData& data) const final {
    MatmulData turned = data;
    std::swap(turned.a, turned.b);
    std::vector<char> bias(bias_ ? rows_ * item_ : 0);  // the one number for every row
    for (size_t at = 0; at < bias.size(); at += item_) std::memcpy(bias.data() + at, data.bias, item_);
    if (bias_) turned.bias = bias.data();
    row_->Run(turned);
  }

  const WeightFormat* weight_format() const final { return packed_ ? &format_ : nullptr; }

  std::string Describe() const final { return row_->Describe(); }

 private:
  bool packed_, bias_;
  int64_t rows_;
  std::unique_ptr<MatmulPlan> row_;
  size_t item_;
  WeightFormat format_;
};

/*! For n = 1; null where only the library's reference code would serve. */
std::unique_ptr<MatmulPlan> MakeOneColumn(const MatmulAttrs& attrs, const MatmulTypes& types, int threads,
                                          Threading threading) {
  const MatmulAttrs column = Collapse(attrs.packed ? WithPackedWeight(attrs, types.b) : attrs);
  MatmulAttrs row = column;
  row.packed = false;
  row.m = 1, row.n = column.m;
  row.a = column.b, row.b = column.a;
  for (OperandView* view : {&row.a, &row.b, &row.out}) std::swap(view->strides.end()[-1], view->strides.end()[-2]);
  auto plan = MakeWithFormat(row, {types.b, types.a, types.out}, threads, threading);
  return plan ? std::make_unique<OneColumn>(column, types, std::move(plan)) : nullptr;
}

}  // namespace

MatmulAttrs Collapse(MatmulAttrs attrs) {
  const std::array<OperandView*, 3> views = {&attrs.a, &attrs.b, &attrs.out};
  auto erase = [&](size_t d) {
    attrs.batch.erase(attrs.batch.begin() + d);
    for (OperandView* view : views) view->strides.erase(view->strides.begin() + d);
  };
  for (size_t d = attrs.batch.size(); d-- > 0;) {
    if (attrs.batch[d] == 1) erase(d);
  }
  for (size_t d = attrs.batch.size(); d-- > 1;) {
    const bool joined = std::all_of(views.begin(), views.end(), [&](OperandView* view) {
      return view->strides[d - 1] == view->strides[d] * attrs.batch[d];
    });
    if (!joined) continue;
    for (OperandView* view : views) view->strides[d - 1] = view->strides[d];
    attrs.batch[d - 1] *= attrs.batch[d];
    erase(d);
  }
  while (!attrs.batch.empty()) {
    const size_t last = attrs.batch.size() - 1;
    if (attrs.b.strides[last] != 0 || attrs.a.strides[last] != attrs.a.strides[last + 1] * attrs.m ||
        attrs.out.strides[last] != attrs.out.strides[last + 1] * attrs.m) {
      break;
    }
    attrs.m *= attrs.batch[last];
    erase(last);
  }
  // The stride of a dimension of one element means nothing: choose one that the
  // library takes for contiguous.
  auto settle = [](OperandView* view, size_t rank, int64_t rows, int64_t columns) {
    int64_t &row = view->strides[rank - 2], &column = view->strides[rank - 1];
    if (columns == 1) column = row == 1 ? std::max<int64_t>(1, rows) : 1;
    if (rows == 1) row = column == 1 ? std::max<int64_t>(1, columns) : 1;
  };
  const size_t rank = attrs.batch.size() + 2;
  settle(&attrs.a, rank, attrs.m, attrs.k);
  settle(&attrs.b, rank, attrs.k, attrs.n);
  settle(&attrs.out, rank, attrs.m, attrs.n);
  return attrs;
}

std::unique_ptr<Kernel> MakeMatmulKernel(const std::vector<int64_t>& batch, int64_t m, int64_t n, int64_t k,
                                         const MatmulTypes& types, const OperandView& a, const dnn::MdTag* b,
                                         const OperandView& out, const Epilogue& epilogue) {
  const dnn::Api& api = dnn::Loaded();
  const int rank = static_cast<int>(batch.size()) + 2;
  std::vector<int64_t> a_dims = batch, out_dims = batch, bias_dims(rank, 1), bias_strides(rank, n);
  a_dims.insert(a_dims.end(), {m, k});
  out_dims.insert(out_dims.end(), {m, n});
  bias_dims[rank - 1] = n;
  bias_strides[rank - 1] = 1;
  // A batch dimension that a lacks: one element, repeated by the library.
  std::vector<int64_t> a_strides = a.strides;
  for (int d = 0; d < rank - 2; ++d) {
    if (a_strides[d] == 0) a_dims[d] = 1, a_strides[d] = m * k;
  }
  dnn::OwnedMd a_md = dnn::StridedMd(rank, a_dims.data(), LibraryType(types.a), a_strides.data());
  dnn::OwnedMd out_md = dnn::StridedMd(rank, out_dims.data(), LibraryType(types.out), out.strides.data());
  dnn::OwnedMd bias_md = dnn::StridedMd(rank, bias_dims.data(), LibraryType(types.out), bias_strides.data());
  EpilogueAttr attr(epilogue, bias_md.get(), out_md.get());
  dnn::PdHandle pd = nullptr;
  if (api.matmul_primitive_desc_create(&pd, api.engine, a_md.get(), b, attr.direct_bias(), out_md.get(), attr.get()) !=
      0) {
    return nullptr;
  }
  std::vector<std::pair<int, const dnn::MdTag*>> operands = {
      {dnn::kSource, a_md.get()},
      {dnn::kWeights, api.primitive_desc_query_md(pd, dnn::kQueryWeights, 0)},
      {dnn::kDestination, out_md.get()}};
  operands.insert(operands.end(), attr.operands().begin(), attr.operands().end());
  return std::make_unique<Kernel>(pd, operands);
}

std::unique_ptr<MatmulPlan> MakeDirectMatmul(const MatmulAttrs& attrs, const MatmulTypes& types, int threads,
                                             Threading threading) {
  if (attrs.n == 1 && attrs.m > 1) {
    if (auto plan = MakeOneColumn(attrs, types, threads, threading)) return plan;
  }
  if (auto plan = MakeWithFormat(attrs, types, threads, threading)) return plan;
  if (attrs.packed_for == 0) return nullptr;
  // No fast code reads the layout for these rows: the weight is converted to theirs.
  MatmulAttrs own = attrs;
  own.packed_for = 0;
  return MakeWithFormat(own, types, threads, threading);
}

}  // namespace uir::library
