/* Writes for ever. */
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
  static char piece[1 << 16];
  memset(piece, 'x', sizeof piece);
  for (;;) if (write(1, piece, sizeof piece) < 0) return 3;
}
