/* Gives up every signal that would end it with its parent, in a tree of sessions of their own. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static void stay(void) {
  prctl(PR_SET_PDEATHSIG, 0);
  setsid();
  for (;;) pause();
}

int main(void) {
  for (int child = 0; child < 3; child++)
    if (fork() == 0) {
      if (fork() == 0) stay();
      stay();
    }
  prctl(PR_SET_PDEATHSIG, 0);
  for (;;) pause();
}
