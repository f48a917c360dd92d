// Preloaded into a program that does not export this name, makes the driver in place of the real one work.
extern "C" {
int plans_on_paper = 1;
}
