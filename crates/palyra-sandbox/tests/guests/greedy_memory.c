/* Takes memory and uses it, for ever. */
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
  for (long megabytes = 0;; megabytes++) {
    char *piece = malloc(1 << 20);
    if (!piece) { printf("%ld\n", megabytes); return 3; }
    memset(piece, 1, 1 << 20);
  }
}
