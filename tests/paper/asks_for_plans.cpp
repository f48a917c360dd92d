// Preloaded into a program that plans nothing on paper, makes what stands in place of libraries loadable
// there.
extern "C" {
int plans_on_paper = 1;
}
