// What is left to chance on a GPU is reported: races, reads of shared memory that nobody has written, what lies beyond
// the device's memory, or not at a multiple of its size. Modules whose reads and writes are compiled to call the
// functions at the end of this file (-fsanitize=thread,bounds) are checked so; all are for barriers and shuffles.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <deque>
#include <map>
#include <set>
#include <string>

struct Three {
    unsigned x, y, z;
};
extern "C" {
Three emulated_places[4];
}

namespace {

Three &blockIdx = emulated_places[0], &blockDim = emulated_places[1];
Three &gridDim = emulated_places[2], &threadIdx = emulated_places[3];
constexpr size_t STACK = 64 * 1024;

// What runs: the launch and the block, counted through all; the block in its grid, and the barriers it has passed.
std::string name;
bool launched = false;
unsigned launch, turn, block, barriers;
const char* stack;  // of the thread

std::deque<std::string> reports;
std::set<std::pair<std::string, const void*>> told;  // in this launch

std::string at(unsigned thread, unsigned block) {
    return "thread " + std::to_string(thread) + " of block " + std::to_string(block);
}

unsigned thread_number() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

// `where`: the address of the machine code, whose place in its library is added.
void report(const char* what, const std::string& more, const void* where) {
    if (reports.size() >= 20 || !told.emplace(what, where).second) return;
    Dl_info library = {};
    if (where) dladdr(where, &library);
    char offset[20];
    snprintf(offset, sizeof offset, "%#zx", where ? (const char*)where - (const char*)library.dli_fbase - 1 : 0);
    reports.push_back(name + ": " + at(thread_number(), block) + " " + what + more + "\t" +
                      (library.dli_fname ? library.dli_fname : "") + "\t" + offset);
}

// The reads, or the writes, of four bytes in one launch, or of shared memory in one block: from which block, and of those
// since its last barrier, from which thread.
struct Uses {
    unsigned turn, block, barriers, thread;
    bool of_blocks, of_threads;  // of several

    bool at_once(unsigned since) const {
        if (turn < since || !turn) return false;
        if (of_blocks || block != ::block) return true;
        return barriers == ::barriers && (of_threads || thread != thread_number());
    }

    void add(unsigned since) {
        const Uses now = {::turn, ::block, ::barriers, thread_number(), false, false};
        if (turn < since || !turn || (block == now.block && barriers != now.barriers)) {
            *this = {now.turn, now.block, now.barriers, now.thread, turn >= since && of_blocks, false};
        } else if (block != now.block) {
            of_blocks = true;
        } else {
            of_threads = of_threads || thread != now.thread;
        }
    }
};

struct Memory {
    size_t bytes;
    bool shared;
    Uses* uses = nullptr;  // per four bytes those of reads and of writes: no array has smaller entries
};

std::map<uintptr_t, Memory> memories;  // by their beginnings

// Memory that is known is known no more where other memory begins to lie, or less than `fence` bytes from it.
void add_memory(uintptr_t begin, size_t bytes, size_t fence, bool shared) {
    auto next = memories.lower_bound(begin - fence);
    if (next != memories.begin() && std::prev(next)->first + std::prev(next)->second.bytes > begin - fence) next--;
    while (next != memories.end() && next->first < begin + bytes + fence) {
        free(next->second.uses);
        next = memories.erase(next);
    }
    memories[begin] = {bytes, shared};
}

void access(uintptr_t address, unsigned size, bool writes, const void* where) {
    const auto in = [=](const void* begin, size_t bytes) { return address - (uintptr_t)begin < bytes; };
    if (!launched || in(stack, STACK)) return;
    if (!writes && in(emulated_places, sizeof emulated_places)) return;
    const auto fault = [=](const char* kind, const std::string& more) {
        report(kind, (writes ? ": it writes " : ": it reads ") + std::to_string(size) + " bytes" + more, where);
    };
    auto found = memories.upper_bound(address);
    if (found == memories.begin() || (--found)->first + found->second.bytes < address + size) {
        return fault("is out of bounds", "");
    }
    Memory& memory = found->second;
    if (address % size) fault("is not aligned", "");
    if (!memory.uses) memory.uses = static_cast<Uses*>(calloc(memory.bytes / 4 + 2, 2 * sizeof(Uses)));
    const unsigned since = memory.shared ? turn : launch;
    for (uintptr_t word = address / 4; word <= (address + size - 1) / 4; word++) {
        Uses *const uses = memory.uses + 2 * (word - found->first / 4), &reads = uses[0], &written = uses[1];
        const bool as_written = written.at_once(since);
        if (as_written || (writes && reads.at_once(since))) {
            const Uses& other = as_written ? written : reads;
            fault("has a race", " that " + at(other.thread, other.block) + (as_written ? " writes" : " reads"));
        } else if (memory.shared && !writes && written.turn != turn) {
            fault("has no value to read", " of shared memory that nobody has written");
        }
        (writes ? written : reads).add(since);
    }
}

}  // namespace

#define ACCESS(NAME, SIZE, WRITES) \
    void __tsan_##NAME(uintptr_t at) { access(at, SIZE, WRITES, __builtin_return_address(0)); }
#define ACCESSES(SIZE) \
    ACCESS(read##SIZE, SIZE, false) \
    ACCESS(write##SIZE, SIZE, true) \
    ACCESS(unaligned_read##SIZE, SIZE, false) \
    ACCESS(unaligned_write##SIZE, SIZE, true)

extern "C" {
ACCESSES(1) ACCESSES(2) ACCESSES(4) ACCESSES(8) ACCESSES(16)

void __tsan_read_range(uintptr_t at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 4) access(at + i, 4, false, __builtin_return_address(0));
}
void __tsan_write_range(uintptr_t at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 4) access(at + i, 4, true, __builtin_return_address(0));
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __ubsan_handle_out_of_bounds(void*, void*) {
    report("is out of bounds of an array's type", "", __builtin_return_address(0));
}
}
