// SPDX-License-Identifier: Apache-2.0
// Buffers and queues of a core, and where the kernel runs.
#include <cstring>
#include <string>

#include "device/ascendc/instruction.h"
#include "device/ascendc/machine.h"

using namespace uir::ascendc;

namespace {

constexpr int kMostBuffers = 64;
constexpr int kOwnFlags = 3;

uint64_t Usable(uint32_t memory) {
  return memory == kUirUb ? machine.device.usable_ub : machine.core->memory[memory].bytes;
}

/*! \brief Take bytes of a memory for a buffer; its address. */
uint64_t Take(int which, uint64_t count, uint64_t bytes, int line) {
  auto memory = static_cast<uint32_t>(which);
  Core& core = *machine.core;
  LocalMemory& local = core.memory[memory];
  if (!local.data) {
    Fail(FindingAt("no-memory", std::string("a buffer in ") + MemoryName(memory) + ", which this core does not have",
                   memory, kUirMemories, line));
  }
  uint64_t size = (bytes + 31) / 32 * 32, address = local.taken;
  core.buffers += static_cast<int>(count);
  if (core.buffers > kMostBuffers) {
    Report(FindingAt("buffer", std::to_string(core.buffers) + " buffers: a TPipe has at most 64", memory, kUirMemories,
                     line));
  }
  if (bytes == 0) Report(FindingAt("buffer", "a buffer without bytes", memory, kUirMemories, line));
  local.taken += count * size;
  if (local.taken > Usable(memory)) {
    Fail(FindingAt("capacity",
                   "the buffers take " + std::to_string(local.taken) + " bytes of the " + MemoryName(memory) +
                       ", of which a kernel may use " + std::to_string(Usable(memory)),
                   memory, kUirMemories, line));
  }
  return address;
}

[[noreturn]] void QueueFault(const std::string& what, uint32_t memory, int line) {
  Fail(FindingAt("queue", what, memory, kUirMemories, line));
}

/*! \brief The id of a flag that a queue has waited for. */
void GiveBack(const Queue& queue, int* id, bool full, int line) {
  if (*id < 0) return;
  auto from = static_cast<int>(queue.from), to = static_cast<int>(queue.to);
  ReleaseOwnEvent(full ? from : to, full ? to : from, *id, line);
  *id = -1;
}

void Alloc(Queue* queue, UirTensor* tensor, int line) {
  Core& core = *machine.core;
  size_t chosen = queue->buffers.size();
  for (size_t i = 0; i < queue->buffers.size() && chosen == queue->buffers.size(); ++i) {
    size_t at = (queue->next + i) % queue->buffers.size();
    if (queue->buffers[at].state == Queue::kFree) chosen = at;
  }
  if (chosen == queue->buffers.size()) {
    QueueFault("AllocTensor: all " + std::to_string(chosen) + " buffers of the queue are in use", queue->memory, line);
  }
  Queue::Buffer& buffer = queue->buffers[chosen];
  queue->next = (chosen + 1) % queue->buffers.size();
  if (buffer.returned) core.pipes.Acquire(queue->from, buffer.emptied);
  GiveBack(*queue, &buffer.free_event, false, line);
  buffer.state = Queue::kAllocated;
  buffer.line = line;
  tensor->address = buffer.address;
  tensor->bytes = queue->bytes;
  tensor->memory = queue->memory;
}

Queue::Buffer* BufferOf(Queue* queue, const UirTensor& tensor, const char* step, int line) {
  for (Queue::Buffer& buffer : queue->buffers) {
    if (tensor.memory == queue->memory && tensor.address == buffer.address) return &buffer;
  }
  QueueFault(std::string(step) + ": the tensor is no buffer of this queue", queue->memory, line);
}

void Enque(Queue* queue, const UirTensor& tensor, int line) {
  Queue::Buffer* buffer = BufferOf(queue, tensor, "EnQue", line);
  if (buffer->state != Queue::kAllocated) {
    QueueFault("EnQue: the tensor was not allocated from the queue, or is in it already", queue->memory, line);
  }
  if (queue->depth > 0 && queue->queued.size() >= static_cast<size_t>(queue->depth)) {
    QueueFault("EnQue: the queue has a depth of " + std::to_string(queue->depth) + " and holds as many tensors",
               queue->memory, line);
  }
  buffer->state = Queue::kQueued;
  buffer->full_event = TakeOwnEvent(static_cast<int>(queue->from), static_cast<int>(queue->to), line);
  buffer->filled = machine.core->pipes.Publish(queue->from);
  buffer->filled.time += machine.device.sync_cycles;
  buffer->line = line;
  queue->queued.push_back(static_cast<size_t>(buffer - queue->buffers.data()));
}

void Deque(Queue* queue, UirTensor* tensor, int line) {
  if (queue->queued.empty()) QueueFault("DeQue: the queue is empty", queue->memory, line);
  Queue::Buffer& buffer = queue->buffers[queue->queued.front()];
  queue->queued.pop_front();
  machine.core->pipes.Acquire(queue->to, buffer.filled);
  GiveBack(*queue, &buffer.full_event, true, line);
  buffer.state = Queue::kTaken;
  buffer.line = line;
  tensor->address = buffer.address;
  tensor->bytes = queue->bytes;
  tensor->memory = queue->memory;
}

void Free(Queue* queue, const UirTensor& tensor, int line) {
  Queue::Buffer* buffer = BufferOf(queue, tensor, "FreeTensor", line);
  if (buffer->state != Queue::kTaken && buffer->state != Queue::kAllocated) {
    QueueFault(buffer->state == Queue::kFree ? "FreeTensor: the tensor is free already"
                                             : "FreeTensor: the tensor is still in the queue",
               queue->memory, line);
  }
  buffer->state = Queue::kFree;
  buffer->returned = true;
  buffer->free_event = TakeOwnEvent(static_cast<int>(queue->to), static_cast<int>(queue->from), line);
  buffer->emptied = machine.core->pipes.Publish(queue->to);
  buffer->emptied.time += machine.device.sync_cycles;
  buffer->line = line;
}

}  // namespace

extern "C" {

void uir_ascendc_pipe_begin(int line) {
  if (machine.core->pipe_object) {
    Report(FindingAt("buffer", "a second TPipe while the first is alive", kUirMemories, kUirMemories, line));
  }
  machine.core->pipe_object = true;
  // On a cube core of this chip the object has set three flags for the vendor's own matrix functions, and waits for
  // them when it ends.
  for (int id = 0; id < kOwnFlags && !machine.core->vector; ++id) {
    SetFlag(kUirM, kUirMte1, TakeOwnEvent(kUirM, kUirMte1, line), line);
  }
}

void uir_ascendc_pipe_end(int line) {
  Core& core = *machine.core;
  core.pipe_object = false;
  for (int id = 0; id < kOwnFlags && !core.vector; ++id) {
    WaitFlag(kUirM, kUirMte1, id, line);
    ReleaseOwnEvent(kUirM, kUirMte1, id, line);
  }
  core.pipes.BarrierAll();
  core.buffers = 0;
  for (LocalMemory& memory : core.memory) memory.taken = 0;
}

uint64_t uir_ascendc_buffer(int memory, uint64_t bytes, int line) { return Take(memory, 1, bytes, line); }

int uir_ascendc_queue(int memory, int from, int to, int depth, uint64_t count, uint64_t bytes, int line) {
  Core& core = *machine.core;
  Queue queue{static_cast<uint32_t>(memory),
              static_cast<uint32_t>(from),
              static_cast<uint32_t>(to),
              depth,
              (bytes + 31) / 32 * 32,
              {},
              {},
              0};
  uint64_t address = Take(memory, count, bytes, line);
  for (uint64_t i = 0; i < count; ++i) {
    queue.buffers.emplace_back();
    queue.buffers.back().address = address + i * queue.bytes;
  }
  core.queues.push_back(std::move(queue));
  return static_cast<int>(core.queues.size() - 1);
}

void uir_ascendc_queue_step(int index, int step, UirTensor* tensor, int line) {
  Core& core = *machine.core;
  if (index < 0) QueueFault("a queue without buffers: InitBuffer was not called", kUirMemories, line);
  Queue* queue = &core.queues[static_cast<size_t>(index)];
  switch (step) {
    case kUirAlloc:
      return Alloc(queue, tensor, line);
    case kUirEnque:
      return Enque(queue, *tensor, line);
    case kUirDeque:
      return Deque(queue, tensor, line);
    default:
      return Free(queue, *tensor, line);
  }
}

int uir_ascendc_queue_count(int index, int step) {
  if (index < 0) return 0;
  const Queue& queue = machine.core->queues[static_cast<size_t>(index)];
  if (step == kUirEnque) return static_cast<int>(queue.queued.size());
  int idle = 0;
  for (const Queue::Buffer& buffer : queue.buffers) idle += buffer.state == Queue::kFree;
  return idle;
}

int64_t uir_ascendc_block_index(void) { return machine.core->block_index; }
int64_t uir_ascendc_block_count(void) { return machine.blocks; }
int64_t uir_ascendc_sub_block(void) { return machine.core->sub_block; }
int64_t uir_ascendc_sub_block_count(void) { return machine.core_kind == "mix_1_2" ? 2 : 1; }
int uir_ascendc_is_vector_core(void) { return machine.core->vector; }

void uir_ascendc_task_type(const char* core, int line) {
  if (machine.core_kind == core) return;
  Fail(FindingAt("task-type", std::string("the kernel is of type ") + core + " and launched as " + machine.core_kind,
                 kUirMemories, kUirMemories, line));
}

void uir_ascendc_fail(const char* kind, const char* what, int line) {
  Fail(FindingAt(kind, what, kUirMemories, kUirMemories, line));
}

uint64_t uir_ascendc_get(const UirTensor* tensor, uint64_t offset, int line) {
  NeedValues();
  Instruction instruction("GetValue", kUirS, line);
  Operand& source = instruction.Reads(*tensor, "source");
  auto size = static_cast<int64_t>(TypeBytes(tensor->type));
  source.ranges.Add(static_cast<int64_t>(offset) * size, size);
  if (!instruction.Begin(size)) return 0;
  uint64_t value = 0;
  auto at = static_cast<int64_t>(offset) * size;
  std::memcpy(&value, source.data + at, static_cast<size_t>(size));
  bool known = true;
  if (source.known) {
    for (int64_t i = 0; i < size; ++i) known = known && source.known[at + i] == 0xFF;
  } else {
    known = source.allocation->written.HasAll(static_cast<size_t>(source.data + at - source.allocation->data),
                                              static_cast<size_t>(size));
  }
  if (!known) instruction.Fault("unwritten", "reads an element that nothing wrote", tensor->memory);
  instruction.End(machine.device.scalar_cycles, 0, size);
  return value;
}

void uir_ascendc_set(const UirTensor* tensor, uint64_t offset, uint64_t value, int line) {
  Instruction instruction("SetValue", kUirS, line);
  Operand& target = instruction.Writes(*tensor, "target");
  auto size = static_cast<int64_t>(TypeBytes(tensor->type));
  target.ranges.Add(static_cast<int64_t>(offset) * size, size);
  if (!instruction.Begin(size)) return;
  instruction.End(machine.device.scalar_cycles, 0, size);
  if (!machine.values) return;
  auto at = static_cast<int64_t>(offset) * size;
  std::memcpy(target.data + at, &value, static_cast<size_t>(size));
  if (target.known) {
    std::memset(target.known + at, 0xFF, static_cast<size_t>(size));
  } else {
    target.allocation->written.Insert(static_cast<size_t>(target.data + at - target.allocation->data),
                                      static_cast<size_t>(size));
  }
}

}  // extern "C"
