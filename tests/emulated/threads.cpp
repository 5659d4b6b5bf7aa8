// Threads of a block. A fiber runs threads one after the other, as a plain loop; where one has to wait, its fiber stays
// with it, and another fiber begins the next threads. A warp that may go on goes as far as it can, before others move.
// Launches run blocks, warps and threads forward, backward and in random order in turn, so that missing barriers show.
#include <setjmp.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace {

struct Kernel {
    void (*call)(void** parameters);
    const unsigned* sizes;
    unsigned parameters;
    const char *shared, *shared_end;  // null where it is not checked
};

enum Wait { NO, BLOCK, WARP };
constexpr unsigned WARP_SIZE = 32;

struct Fiber {
    std::unique_ptr<char[]> stack{new char[STACK]};
    ucontext_t start;
    jmp_buf here;
    bool begun = false;
    unsigned thread = 0;
    Wait wait = NO;
    int line = 0;
};

struct Lane {
    char values[2][8];
    unsigned turn;
};

jmp_buf scheduler;
Fiber* running;
std::vector<std::unique_ptr<Fiber>> idle, waiting;  // those that wait: by thread
std::vector<Lane> lanes;
const Kernel* kernel;
void** parameters;
unsigned begun, threads, launches;
std::vector<unsigned> order, order_of_warps, order_in_warp;
int failed;  // a number of CUDA's

std::vector<unsigned> ordered(uint64_t count) {
    std::vector<unsigned> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    if (launches % 3 == 1) std::reverse(numbers.begin(), numbers.end());
    if (launches % 3 == 2) std::shuffle(numbers.begin(), numbers.end(), std::mt19937(launches));
    return numbers;
}

void enter(unsigned thread) {
    running->thread = thread;
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}

void leave() {  // _setjmp and _longjmp, as those of ucontext.h ask the system twice a switch
    if (_setjmp(running->here) == 0) _longjmp(scheduler, 1);
}

void work() {
    for (;;) {
        while (begun < threads) {
            enter(order[begun++]);
            kernel->call(parameters);
        }
        running->wait = NO;
        leave();
    }
}

void resume(std::unique_ptr<Fiber> fiber) {
    running = fiber.get();
    stack = running->stack.get();
    enter(fiber->thread);
    if (_setjmp(scheduler) == 0) {
        if (running->begun) _longjmp(running->here, 1);
        running->begun = true;
        getcontext(&running->start);
        running->start.uc_stack.ss_sp = running->stack.get();
        running->start.uc_stack.ss_size = STACK;
        running->start.uc_link = nullptr;
        makecontext(&running->start, work, 0);
        setcontext(&running->start);
    }
    if (running->wait == NO) {
        idle.emplace_back(fiber.release());
    } else {
        waiting[running->thread].reset(fiber.release());
    }
}

void wait_for(Wait what, int line) {
    running->wait = what;
    running->line = line;
    leave();
}

// Whether all of the threads [begin, end) wait for the same at the same line.
bool together(Wait what, unsigned begin, unsigned end) {
    const Fiber* first = waiting[begin].get();
    return std::all_of(&waiting[begin], &waiting[0] + end, [=](const std::unique_ptr<Fiber>& fiber) {
        return fiber && fiber->wait == what && fiber->line == first->line;
    });
}

void fail(int status, const char* what, const std::string& more, const void* where = nullptr) {
    failed = status;
    report(what, more, where);
}

void run_block() {
    begun = barriers = 0;
    lanes.assign(threads, Lane());
    waiting.clear();
    waiting.resize(threads);
    while (begun < threads) {
        std::unique_ptr<Fiber> fiber(idle.empty() ? new Fiber : idle.back().release());
        if (!idle.empty()) idle.pop_back();
        resume(std::move(fiber));
    }
    std::vector<bool> ready(order_of_warps.size());
    while (!failed) {
        bool moved = false;
        for (const unsigned warp : order_of_warps) {
            const unsigned begin = warp * WARP_SIZE, end = std::min(begin + WARP_SIZE, threads);
            const bool whole = end == begin + WARP_SIZE;
            while (!failed && (ready[warp] || (whole && together(WARP, begin, end)))) {
                ready[warp] = false;
                moved = true;
                for (const unsigned lane : order_in_warp) {
                    if (begin + lane < end && waiting[begin + lane]) resume(std::move(waiting[begin + lane]));
                }
            }
        }
        if (moved) continue;
        const auto left = std::find_if(waiting.begin(), waiting.end(), [](auto& fiber) { return !!fiber; });
        if (left == waiting.end()) break;
        if (together(BLOCK, 0, threads)) {
            ready.assign(ready.size(), true);
            barriers++;
        } else if (!failed) {
            enter((*left)->thread);
            const std::string line = std::to_string((*left)->line);
            fail(719, "waits for others that never come", ", at line " + line);  // CUDA_ERROR_LAUNCH_FAILED
        }
    }
}

int run(const Kernel* what, Three grid, Three block_size, void** given) {
    kernel = what;
    parameters = given;
    gridDim = grid;
    blockDim = block_size;
    threads = blockDim.x * blockDim.y * blockDim.z;
    failed = 0;
    order = ordered(threads);
    order_of_warps = ordered((threads + WARP_SIZE - 1) / WARP_SIZE);
    order_in_warp = ordered(WARP_SIZE);
    told.clear();
    launched = true;
    launch = turn + 1;
    for (const unsigned number : ordered((uint64_t)grid.x * grid.y * grid.z)) {
        turn++;
        block = number;
        blockIdx = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
        if (!failed) run_block();
    }
    launched = false;
    launches++;
    return failed;
}

}  // namespace

extern "C" {

void emulated_barrier(int line) { wait_for(BLOCK, line); }

void emulated_exchange(void* value, unsigned size, unsigned mask, unsigned distance, int line) {
    const unsigned thread = running->thread, from = thread ^ distance;
    if (mask != 0xffffffffu || distance >= WARP_SIZE || size > 8) fail(719, "exchanges in a way that is not known", "");
    // Two places in turn: nobody is two shuffles ahead of a thread of its warp.
    const unsigned turn = lanes[thread].turn++ % 2;
    memcpy(lanes[thread].values[turn], value, size);
    wait_for(WARP, line);
    memcpy(value, lanes[from % threads].values[turn], size);
}

void emulated_aligned(const void* address, unsigned bytes) {  // or CUDA_ERROR_MISALIGNED_ADDRESS
    if ((uintptr_t)address % bytes) fail(716, "is not aligned", "", __builtin_return_address(0));
}
}
