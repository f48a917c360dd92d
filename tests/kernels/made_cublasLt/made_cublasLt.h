#pragma once
#include <cstdint>
#include <functional>
#include <string>

/// What tests ask of the library that stands in for cuBLASLt (libcublasLt.so.13), besides cuBLASLt's own
/// functions.
///
/// It checks what the documentation demands of each call, refuses as the documentation says, and computes
/// products literally, in the stream that it is given, or at once where none is.
namespace made_cublasLt {

/// Forgets calls, mistakes and refusals of a test before. Calls count anew.
void begin();
/// Number of calls since `begin`, and the function of each, with the attribute that it set.
int calls();
std::string call(int number);
/// Lets a call answer that it went well, and do nothing.
void leave_out(int number);
/// Lets the call behind a call happen before it, if both concern one description or preference.
void exchange(int number);
/// Whether that was done.
bool has_exchanged();
/// The reason of the last refusal.
std::string said();

/// Epilogues of products that a test does something about.
using Epilogues = std::function<bool(std::uint32_t)>;
/// Lets no plan be found for these.
void plan_nothing(const Epilogues& of);
/// Lets these, which have a plan, be refused as they are run, with this cublasStatus_t.
void refuse_to_run(const Epilogues& of, int status);
/// Products that were run, handles that have been made and not let go of, and the number of the kind of
/// algorithm that ran last, with the multiprocessors that it was asked for (0: all).
int runs();
std::string last_work();
int alive();

/// Makes the calls that need no device of the real library too, and compares what it answers and what it has
/// understood. What differs, in words; empty: nothing has so far.
bool open_beside(const std::string& path);
std::string differs();
/// Calls that were made of both.
int made_beside();

}  // namespace made_cublasLt
