#pragma once
#include <string>
#include <vector>

/// What tests ask of the library that stands in for NCCL (libnccl.so.2), besides NCCL's own functions.
///
/// It carries messages between the processes of one machine, in memory that they share and in streams that
/// are lists of steps (device_stream.h). It keeps what NCCL's documentation promises, answers as NCCL does
/// where the documentation refuses a call, and throws where NCCL would stand still or give other numbers.
namespace made_nccl {

/// Call of NCCL's functions, as it was made.
struct Call {
  std::string function;
  int group = 0;        ///< which of the groups it is put into; 0: none
  std::string message;  ///< peer and direction of a send or receive; empty: another call
};

/// Forgets communicators, groups, orders and mistakes: what a test before has left. Calls count anew.
void begin();
/// Number of calls since `begin`, and what they were.
int calls();
Call call(int number);
/// Lets a call answer that it went well, and do nothing.
void leave_out(int number);
/// Lets the call behind a call happen before it.
void exchange(int number);
/// Lets every call of a function do nothing.
void leave_out_all(const std::string& function);

/// Breaks all communicators of this process: they move nothing any more, and report ncclRemoteError.
void lose_a_rank();
/// From now on a connection that has still to be made is an error, as it would make a host wait in a step.
void close_connections();
/// Communicators of this process that have been made and not let go of.
int alive();
/// Messages of this process that have started.
int started();
/// A communicator as it was made, and how many multiprocessors it may take (maxCTAs); 0: as many as it wants.
struct Bound {
  std::string communicator;
  int multiprocessors = 0;
};
/// Communicators that this process has made since `begin`, in their order.
std::vector<Bound> bounds();
/// Sets how many seconds anything may wait for another rank before it throws.
void give_up_after(double seconds);

}  // namespace made_nccl
