/* Fills the workspace with files, for ever. */
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
  static char piece[1 << 20];
  for (int file = 0;; file++) {
    char name[64];
    snprintf(name, sizeof name, "filler-%d", file);
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    for (int part = 0; part < 16; part++)
      if (write(fd, piece, sizeof piece) < 0) return 3;
    fsync(fd);
    close(fd);
  }
}
