/* Executes a program that belongs to root and has the bit. */
#include "guest.h"

static int attempt(void) {
  int status = 0;
  if (fork() == 0) {
    execl("./setuid-id", "setuid-id", NULL);
    _exit(1);
  }
  wait(&status);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}
