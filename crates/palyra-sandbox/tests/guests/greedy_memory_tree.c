/* Many processes that each take a little memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  for (int child = 0; child < 16; child++)
    if (fork() == 0) {
      char *piece = malloc(24 << 20);
      if (piece) memset(piece, 1, 24 << 20);
      pause();
    }
  pause();
}
