/* Forks until it cannot, and says how far it got. */
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
  int made = 0;
  for (; made < 5000; made++) {
    pid_t child = fork();
    if (child < 0) break;
    if (child == 0) { pause(); _exit(0); }
  }
  usleep(300000);
  printf("%d\n", made);
  return 0;
}
